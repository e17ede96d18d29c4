#include "mounts/watch/decide.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts::watch;
using plan::JournalState;
using plan::Outcome;

namespace {

struct Done {
  bool begun = true, ended = true;
  Outcome outcome = Outcome::done;
};
constexpr Done k_not_begun{false, false, Outcome::skipped}, k_killed{true, false, Outcome::skipped},
    k_failed{true, true, Outcome::failed};

plan::JournalEntry entry_of(const std::vector<plan::Action>& actions, const std::vector<Done>& done,
                            JournalState state = JournalState::unfinished) {
  plan::JournalEntry entry;
  entry.state = state;
  for (std::size_t step = 0; step < actions.size(); ++step) {
    entry.plan.add("/data/share", "", actions[step]);
    entry.steps.push_back({step, done[step].begun, done[step].ended, done[step].outcome});
  }
  return entry;
}

plan::Unmount unmount(const std::string& target = "/data/share") {
  plan::Unmount action;
  action.target = target;
  return action;
}
plan::Mount mount(const std::string& target = "/data/share") {
  plan::Mount action;
  action.target = target;
  return action;
}

std::map<std::string, LastChange> changes_of(const std::vector<plan::JournalEntry>& newest_first) {
  std::set<std::string> targets{"/data/share"};
  std::map<std::string, LastChange> changes;
  for (const auto& entry : newest_first)
    add_last_changes(entry, targets, changes);
  return changes;
}

const std::map<std::string, LastChange> k_cut_off{{"/data/share", LastChange::interrupted}};
const std::map<std::string, LastChange> k_taken_away{{"/data/share", LastChange::unmounted}};

} // namespace

TEST_CASE("last_changes: a recovery that was cut off at any step", "[last-change]") {
  CHECK(changes_of({entry_of({unmount(), mount()}, {k_killed, k_not_begun})}) == k_cut_off);
  CHECK(changes_of({entry_of({unmount(), mount()}, {{}, k_not_begun})}) == k_cut_off);
  CHECK(changes_of({entry_of({unmount(), mount()}, {{}, k_killed})}) == k_cut_off);
  CHECK(changes_of({entry_of({unmount(), mount()}, {{}, k_failed}, JournalState::failed)}) == k_cut_off);
  CHECK(changes_of({entry_of({unmount(), mount()}, {{}, {}}, JournalState::complete)}).empty());
  CHECK(changes_of({entry_of({unmount(), mount()}, {k_not_begun, k_not_begun})}).empty());
}

TEST_CASE("last_changes: what was unmounted, and what came later", "[last-change]") {
  const auto gone = entry_of({unmount()}, {{}}, JournalState::complete);
  const auto cut = entry_of({unmount(), mount()}, {{}, k_killed});
  const auto back = entry_of({mount()}, {{}}, JournalState::complete);
  CHECK(changes_of({gone}) == k_taken_away);
  CHECK(changes_of({gone, cut}) == k_taken_away);
  CHECK(changes_of({cut, gone}) == k_cut_off);
  CHECK(changes_of({back, cut}).empty());
  const auto tried = entry_of({mount()}, {k_failed}, JournalState::failed);
  CHECK(changes_of({tried, tried, cut}) == k_cut_off); // a second attempt that fails is no end of the first
  CHECK(changes_of({tried, gone}) == k_taken_away);
  CHECK(changes_of({entry_of({unmount()}, {{}}, JournalState::undone), cut}).empty());
  CHECK(changes_of({entry_of({unmount("/other")}, {{}}), gone}) == k_taken_away);
}

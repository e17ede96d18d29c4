// Writing the journal: used by apply(), under the host lock.
#include "base/try.hpp"
#include "plan/journal.hpp"
#include "plan/json_values.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <unistd.h>

namespace sharefs::plan {

namespace {

std::string utc_text(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

Error journal_error(Error error, std::string_view what = "nothing") {
  error.message = fmt::format("the journal cannot be written, so {} is changed: {}", what, error.message);
  return error;
}

std::string end_line(const StepResult& result) {
  Json line{{"event", k_end_event}, {"step", result.step}, {"outcome", to_string(result.outcome)}};
  if (result.error)
    line["error"] = json_of(*result.error);
  return dump_line(line);
}

/// Returns the lines for the steps that found nothing to do, and for the step that begins.
std::string intent_lines(const Intent& intent) {
  std::string lines;
  for (const auto& result : intent.unchanged)
    lines += end_line(result) + "\n";
  return lines + dump_line({{"event", k_begin_event}, {"step", intent.step}, {"action", to_json(intent.action)}});
}

/// Makes an entry under a name with a dot, and renames it when it is complete, so that a killed process leaves no
/// incomplete entry.
Result<void> make_entry(const PrivateDirectory& journal, const std::string& id, const Json& head, const Intent& first) {
  const auto draft = ".new-" + id;
  TRY(journal.remove(draft));
  TRY_ASSIGN(const auto directory, journal.make_below(draft));
  TRY(directory.create(k_plan_file, head.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
  TRY(directory.create(k_steps_file, intent_lines(first) + "\n"));
  return journal.rename(draft, id);
}

} // namespace

Result<std::string> Journal::begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                                   std::chrono::system_clock::time_point now, const Intent& first) const {
  const auto state = PrivateDirectory::make(m_files, m_state_directory);
  const auto journal = state ? state->make_below("journal") : fail(state.error());
  const auto names = journal ? journal->names() : fail(journal.error());
  if (!names)
    return fail(journal_error(names.error()));
  const bool is_this_process = identity.pid == ::getpid() && identity.boot_id == sys::own_boot_id();
  auto head =
      json_of(JournalHead{k_journal_version, command, identity.user, utc_text(now), identity.pid, identity.boot_id,
                          is_this_process ? sys::process_start(sys::Files(), identity.pid).value_or(0) : 0},
              JsonTexts::exact);
  head["plan"] = to_json(plan);
  std::uint64_t last = 0; // an entry that was set aside (17.damaged) counts, too: others may name it as their undo
  for (const auto& name : *names)
    last = std::max(last, entry_number(name.substr(0, name.find('.'))));
  auto id = std::to_string(last + 1);
  if (auto made = make_entry(*journal, id, head, first); !made)
    return fail(journal_error(made.error()));
  return id;
}

Result<PrivateDirectory> Journal::entry(const std::string& id) const {
  TRY_ASSIGN(const auto journal, directory());
  TRY_ASSIGN(auto found, journal ? journal->open_below(id) : std::nullopt);
  if (!found)
    return fail(ErrorCode::not_found, "the journal has no entry `" + id + "`");
  return std::move(*found);
}

Result<void> Journal::append(const std::string& id, const std::string& line) const {
  TRY_ASSIGN(const auto directory, entry(id));
  return directory.append(k_steps_file, line);
}

Result<void> Journal::begin_step(const std::string& id, const Intent& intent) const {
  if (auto appended = append(id, intent_lines(intent)); !appended)
    return fail(journal_error(appended.error(), "nothing more"));
  return {};
}

Result<void> Journal::end_step(const std::string& id, const StepResult& result) const {
  return append(id, end_line(result));
}

Result<void> Journal::end(const std::string& id, const Report& report) const {
  auto outcomes = Json::array();
  for (const auto& result : report.results)
    outcomes.push_back(to_string(result.outcome));
  return append(id, dump_line({{"event", k_finish_event}, {"outcomes", std::move(outcomes)}}));
}

Result<void> Journal::mark_undone(const std::string& id, const std::string& by) const {
  // If this entry is an undo, the entry that it took back is in force again; if that one is an undo, too, its own entry
  // is undone again, and so on along the chain.
  constexpr int k_longest_chain = 1000;
  std::string current = id;
  bool undone = true;
  for (int n = 0; n < k_longest_chain && !current.empty(); ++n, undone = !undone) {
    const auto entry = load(current);
    if (!entry)
      return n == 0 ? Result<void>(fail(entry.error())) : Result<void>{}; // older ones may have been pruned
    const Json line{{"event", undone ? k_undone_event : k_redone_event}, {"by", by}};
    TRY(append(current, dump_line(line)));
    current = entry->plan.undoes;
  }
  return {};
}

Result<void> Journal::prune(std::size_t keep, std::uint64_t bytes) const {
  TRY_ASSIGN(const auto contents, this->contents());
  const auto& journal = contents.directory;
  for (const auto& name : contents.names)
    if (name.starts_with('.'))     // a begin() or prune() that was killed has left it
      (void)journal->remove(name); // what is no directory of ours must not keep the journal from being pruned
  const auto ids = contents.ids();
  std::size_t kept = 0;
  std::uint64_t held = 0;
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const auto size = journal->total_size(*id);
    if (!size) // no directory of ours has this name
      continue;
    held += *size;
    if (kept == 0 || (kept < keep && held <= bytes)) {
      ++kept;
      continue;
    }
    keep = kept; // all older entries are deleted as well, so that no gap is left
    const auto entry = load(*id);
    if (entry && entry->state == JournalState::running)
      continue;
    const auto deleted_name = ".deleted-" + *id;
    TRY(journal->rename(*id, deleted_name));
    TRY(journal->remove(deleted_name));
  }
  return {};
}

} // namespace sharefs::plan

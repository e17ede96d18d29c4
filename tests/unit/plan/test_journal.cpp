#include "fake_system.hpp"
#include "plan/journal.hpp"
#include "plan/journal_files.hpp"
#include "support/catch.hpp"

#include <fcntl.h>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;

namespace {

struct JournalMachine {
  test::TemporaryRoot root;
  test::FakeSystem system{root.path()};
  Journal journal{system.files(), "/var/lib/sharefs"};

  [[nodiscard]] std::string at(const std::string& id, const std::string& file) const {
    return root.path() + "/var/lib/sharefs/journal/" + id + "/" + file;
  }
  std::string begin(const Plan& plan, const std::string& command = "sharefs test") {
    const auto id = journal.begin(plan, command, system.who, system.time);
    REQUIRE(id);
    system.time += std::chrono::seconds(1);
    return *id;
  }
  /// A whole run of a plan with one step.
  std::string record(const Plan& plan, Outcome outcome = Outcome::done) {
    const auto id = begin(plan);
    const StepResult result{0, outcome, {}, {}};
    REQUIRE(journal.step_begins(id, 0, plan.steps[0].action));
    REQUIRE(journal.step_ended(id, result));
    Report report;
    report.results = {result};
    REQUIRE(journal.end(id, report));
    return id;
  }
  JournalState state(const std::string& id) { return journal.load(id)->state; }
};

Plan one_step() {
  Plan plan;
  plan.add("g", "why", MakeDirectory{"/d", 0755, {}});
  return plan;
}

} // namespace

TEST_CASE("an entry tells what was begun and what ended") {
  JournalMachine machine;
  Plan plan = one_step();
  plan.add("g", "why", RemoveDirectory{"/e", 0755, {}});
  plan.add("g", "why", MakeLink{"/l", "t", {}});
  const auto id = machine.begin(plan, "sharefs mount 'a b'");
  CHECK(id == "20260131-120000-4711");
  REQUIRE(machine.journal.step_begins(id, 0, plan.steps[0].action));
  REQUIRE(machine.journal.step_ended(id, {0, Outcome::done, {}, {}}));
  REQUIRE(machine.journal.step_begins(id, 1, RemoveDirectory{"/e", 0711, {}}));
  auto entry = machine.journal.load(id);
  REQUIRE(entry);
  CHECK(entry->id == id);
  CHECK(entry->command == "sharefs mount 'a b'");
  CHECK(entry->user == "root");
  CHECK(entry->started == "2026-01-31T12:00:00Z");
  CHECK(entry->state == JournalState::unfinished);
  REQUIRE(entry->steps.size() == 3);
  CHECK(entry->steps[0].took_effect());
  CHECK(entry->steps[0].ended);
  CHECK(entry->steps[1].took_effect());
  CHECK_FALSE(entry->steps[1].ended);
  CHECK(entry->plan.steps[1].action == Action(RemoveDirectory{"/e", 0711, {}})); // as it was found
  CHECK_FALSE(entry->steps[2].took_effect());

  REQUIRE(machine.journal.step_ended(id, {1, Outcome::failed, Error{ErrorCode::busy, "m", "", ""}, {}}));
  Report report;
  report.results = {{0, Outcome::done, {}, {}}, {1, Outcome::failed, {}, {}}, {2, Outcome::skipped, {}, {}}};
  REQUIRE(machine.journal.end(id, report));
  entry = machine.journal.load(id);
  CHECK(entry->state == JournalState::failed);
  CHECK(entry->steps[1].error == ErrorCode::busy);
  CHECK_FALSE(entry->steps[2].ended);
}

TEST_CASE("a step that failed by conflict has touched nothing") {
  JournalStep step;
  step.begun = step.ended = true;
  step.outcome = Outcome::failed;
  step.error = ErrorCode::timeout;
  CHECK(step.took_effect());
  step.error = ErrorCode::conflict;
  CHECK_FALSE(step.took_effect());
  step.outcome = Outcome::unchanged;
  CHECK_FALSE(step.took_effect());
}

TEST_CASE("states") {
  JournalMachine machine;
  const auto id = machine.record(one_step());
  CHECK(machine.state(id) == JournalState::complete);
  REQUIRE(machine.journal.mark_undone(id, "other"));
  CHECK(machine.state(id) == JournalState::undone);
  CHECK(machine.journal.load(id)->undone_by == "other");

  machine.system.who.pid = ::getpid();
  machine.system.who.boot_id = current_boot_id();
  const auto mine = machine.begin(one_step());
  CHECK(machine.state(mine) == JournalState::running);
  // The same process number in another boot, or another process of that number.
  auto text = test::content_of(machine.at(mine, "plan.json"));
  const auto start = text.find("\"start_time\": ") + 14;
  text.insert(start, "9");
  test::put(machine.at(mine, "plan.json"), text);
  CHECK(machine.state(mine) == JournalState::unfinished);
}

TEST_CASE("the newest comes first, also within a second") {
  JournalMachine machine;
  std::vector<std::string> ids;
  for (const int pid : {9, 10, 4711}) {
    machine.system.who.pid = pid;
    ids.push_back(*machine.journal.begin(one_step(), "", machine.system.who, machine.system.time));
    ids.push_back(*machine.journal.begin(one_step(), "", machine.system.who, machine.system.time));
  }
  CHECK(ids[1] == "20260131-120000-9-2");
  std::vector<std::string> listed;
  const auto entries = machine.journal.list();
  for (const auto& entry : *entries)
    listed.push_back(entry.id);
  CHECK(std::vector<std::string>(listed.rbegin(), listed.rend()) == ids);
}

TEST_CASE("latest is what `sharefs undo` takes back") {
  JournalMachine machine;
  CHECK(machine.journal.list()->empty());
  CHECK(*machine.journal.latest() == std::nullopt);
  const auto first = machine.record(one_step());
  machine.record(one_step(), Outcome::unchanged);
  machine.begin(one_step()); // killed before its first step
  CHECK((*machine.journal.latest())->id == first);
  const auto second = machine.record(one_step());
  CHECK((*machine.journal.latest())->id == second);
  Plan undo = one_step();
  undo.undoes = second;
  const auto undo_id = machine.record(undo);
  CHECK((*machine.journal.latest())->id == second); // an undo that was cut off is completed
  REQUIRE(machine.journal.mark_undone(second, undo_id));
  CHECK((*machine.journal.latest())->id == first);
  // Undo of the undo: the second is in force again.
  Plan redo = one_step();
  redo.undoes = undo_id;
  const auto redo_id = machine.record(redo);
  REQUIRE(machine.journal.mark_undone(undo_id, redo_id));
  CHECK(machine.state(undo_id) == JournalState::undone);
  CHECK(machine.state(second) == JournalState::complete);
  CHECK((*machine.journal.latest())->id == second);
  // And once more round.
  REQUIRE(machine.journal.mark_undone(redo_id, "x"));
  CHECK(machine.state(redo_id) == JournalState::undone);
  CHECK(machine.state(undo_id) == JournalState::complete);
  CHECK(machine.state(second) == JournalState::undone);
}

TEST_CASE("damaged files are read as far as they go") {
  JournalMachine machine;
  const auto id = machine.begin(one_step());
  REQUIRE(machine.journal.step_begins(id, 0, one_step().steps[0].action));
  const auto steps = machine.at(id, "steps.jsonl");
  test::put(steps, test::content_of(steps) + "{\"event\":\"end\",\"st"); // the machine went down
  CHECK(machine.journal.load(id)->steps[0].begun);
  REQUIRE(machine.journal.step_ended(id, {0, Outcome::done, {}, {}}));
  CHECK(machine.journal.load(id)->steps[0].ended); // the torn line was closed first

  test::put(steps, "[]\n7\n{}\n{\"event\":\"end\",\"step\":99}\n{\"event\":\"begin\",\"step\":-1}\n{\"event\":"
                   "\"finish\",\"outcomes\":[1,2,3]}\n");
  CHECK(machine.journal.load(id)->state == JournalState::failed);
  fs::remove(steps);
  CHECK(machine.journal.load(id)->state == JournalState::unfinished);
  for (const auto* text : {"", "{", "[1]", "{\"plan\":{\"steps\":7}}", "{\"plan\":{\"steps\":[{}]},\"pid\":\"x\"}"}) {
    test::put(machine.at(id, "plan.json"), text);
    const auto entry = machine.journal.load(id);
    REQUIRE(entry);
    CHECK(entry->plan.empty());
    CHECK(entry->state == JournalState::unfinished);
  }
  CHECK(machine.journal.list()->size() == 1);
  CHECK(*machine.journal.latest() == std::nullopt);
}

TEST_CASE("an unknown id is not found, with the nearest one as a hint") {
  JournalMachine machine;
  const auto id = machine.record(one_step());
  auto wrong = id;
  wrong.back() = 'x';
  const auto entry = machine.journal.load(wrong);
  REQUIRE_FALSE(entry);
  CHECK(entry.error().code == ErrorCode::not_found);
  CHECK(entry.error().message == "the journal has no entry `" + wrong + "`");
  CHECK(entry.error().hint == "did you mean `" + id + "`?");
  for (const auto* name : {"", ".", "..", "../journal", "/etc"})
    CHECK_FALSE(machine.journal.load(name));
}

TEST_CASE("the journal is for its owner's eyes") {
  JournalMachine machine;
  const auto old_mask = ::umask(0);
  const auto id = machine.record(one_step());
  ::umask(old_mask);
  const auto mode = [](const std::string& path) { return static_cast<unsigned>(fs::status(path).permissions()); };
  CHECK(mode(machine.root.path() + "/var/lib/sharefs") == 0700);
  CHECK(mode(machine.root.path() + "/var/lib/sharefs/journal") == 0700);
  CHECK(mode(machine.at(id, "")) == 0700);
  CHECK(mode(machine.at(id, "plan.json")) == 0600);
  CHECK(mode(machine.at(id, "steps.jsonl")) == 0600);
}

TEST_CASE("a state directory that others could write is refused") {
  JournalMachine machine;
  const auto begin = [&machine] {
    return machine.journal.begin(one_step(), "", machine.system.who, machine.system.time);
  };
  const auto directory = machine.root.path() + "/var/lib/sharefs";
  fs::create_directories(machine.root.path() + "/var/lib/elsewhere");
  fs::create_directory_symlink("elsewhere", directory);
  REQUIRE_FALSE(begin());
  CHECK(begin().error().message.find("/var/lib/sharefs: is a symbolic link") != std::string::npos);
  fs::remove(directory);
  fs::create_directory(directory);
  ::chmod(directory.c_str(), 0777);
  REQUIRE_FALSE(begin());
  CHECK(begin().error().code == ErrorCode::permission);
  CHECK(begin().error().hint == "run `chmod 0700 /var/lib/sharefs`");
  ::chmod(directory.c_str(), 0755); // as a package makes it
  CHECK(begin());
  if (::geteuid() == 0) {
    REQUIRE(::chown(directory.c_str(), 54321, 54321) == 0);
    CHECK(begin().error().message.find("belongs to another user (uid 54321)") != std::string::npos);
  }
}

TEST_CASE("prune keeps the newest, and whatever is not finished") {
  JournalMachine machine;
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i)
    ids.push_back(i == 1 ? machine.begin(one_step()) : machine.record(one_step()));
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  fs::create_directory(journal + ".new-x");
  test::put(journal + ".deleted-x/plan.json", "");
  REQUIRE(machine.journal.prune(3));
  std::vector<std::string> left;
  const auto entries = machine.journal.list();
  for (const auto& entry : *entries)
    left.push_back(entry.id);
  CHECK(left == std::vector<std::string>{ids[5], ids[4], ids[3], ids[1]});
  CHECK_FALSE(fs::exists(journal + ".new-x"));
  CHECK_FALSE(fs::exists(journal + ".deleted-x"));
  REQUIRE(machine.journal.prune(200));
  CHECK(machine.journal.list()->size() == 4);
}

TEST_CASE("start times of processes") {
  CHECK(start_time_of(::getpid()) > 0);
  CHECK(start_time_of(0) == 0);
  CHECK(start_time_of(4194305) == 0);
}

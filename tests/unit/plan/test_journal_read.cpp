#include "journal_entries.hpp"
#include "journal_machine.hpp"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/wait.h>

using namespace sharefs;
using namespace sharefs::plan;
using test::JournalMachine;
using test::one_step;
namespace fs = std::filesystem;

TEST_CASE("an entry tells what was begun and what ended") {
  JournalMachine machine;
  Plan plan = one_step();
  plan.add("g", "why", remove_directory("/e"));
  plan.add("g", "why", make_link("/l", "t"));
  const auto id = machine.begin(plan, "sharefs mount 'a b'");
  CHECK(id == "1");
  REQUIRE(machine.journal.end_step(id, {0, Outcome::done, {}, {}}));
  REQUIRE(machine.journal.begin_step(id, {1, remove_directory("/e", 0711)}));
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
  CHECK(entry->plan.steps[1].action == Action(remove_directory("/e", 0711))); // as it was found
  CHECK_FALSE(entry->steps[2].took_effect());

  REQUIRE(machine.journal.end_step(id, {1, Outcome::failed, Error{ErrorCode::busy, "m", "", ""}, {}}));
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

  machine.system.machine.identity.pid = ::getpid();
  machine.system.machine.identity.boot_id = sys::own_boot_id();
  const auto mine = machine.begin(one_step());
  CHECK(machine.state(mine) == JournalState::running);
  // The same process number in another boot, or another process of that number.
  auto text = test::content_of(machine.at(mine, "plan.json"));
  const auto start = text.find("\"start_time\": ") + 14;
  text.insert(start, "9");
  test::put(machine.at(mine, "plan.json"), text);
  CHECK(machine.state(mine) == JournalState::unfinished);
}

TEST_CASE("what has deleted something is no obstacle for `sharefs undo`") {
  JournalMachine machine;
  const auto first = machine.record(one_step());
  Plan gc;
  gc.add("", "", RemoveTree{.path = "/old"});
  const auto deleted = machine.record(gc);
  std::vector<JournalEntry> passed;
  CHECK((*machine.journal.find_latest(&passed))->id == first);
  REQUIRE(passed.size() == 1);
  CHECK(passed.front().id == deleted);
  Plan daemon; // has no inverse, and deletes nothing
  daemon.add("", "", RunTool{.argv = {"rpcbind", "-w"}, .undo = {}});
  const auto newest = machine.record(daemon);
  CHECK((*machine.journal.find_latest())->id == newest);
}

TEST_CASE("latest is what `sharefs undo` takes back") {
  JournalMachine machine;
  CHECK(test::entries_of(machine.journal)->empty());
  CHECK(*machine.journal.find_latest() == std::nullopt);
  const auto first = machine.record(one_step());
  machine.record(one_step(), Outcome::unchanged);
  CHECK((*machine.journal.find_latest())->id == first);
  const auto second = machine.record(one_step());
  CHECK((*machine.journal.find_latest())->id == second);
  Plan undo = one_step();
  undo.undoes = second;
  const auto undo_id = machine.record(undo);
  CHECK((*machine.journal.find_latest())->id == second); // an undo that was cut off is completed
  REQUIRE(machine.journal.mark_undone(second, undo_id));
  CHECK((*machine.journal.find_latest())->id == first);
  // Undo of the undo: the second is in force again.
  Plan redo = one_step();
  redo.undoes = undo_id;
  const auto redo_id = machine.record(redo);
  REQUIRE(machine.journal.mark_undone(undo_id, redo_id));
  CHECK(machine.state(undo_id) == JournalState::undone);
  CHECK(machine.state(second) == JournalState::complete);
  CHECK((*machine.journal.find_latest())->id == second);
  // And once more round.
  REQUIRE(machine.journal.mark_undone(redo_id, "x"));
  CHECK(machine.state(redo_id) == JournalState::undone);
  CHECK(machine.state(undo_id) == JournalState::complete);
  CHECK(machine.state(second) == JournalState::undone);
}

TEST_CASE("what a killed process leaves behind is read as far as it goes") {
  JournalMachine machine;
  const auto id = machine.begin(one_step());
  const auto steps = machine.at(id, "steps.jsonl");
  test::put(steps, test::content_of(steps) + "{\"event\":\"end\",\"st"); // the machine went down
  CHECK(machine.journal.load(id)->steps[0].begun);
  CHECK(machine.state(id) == JournalState::unfinished);
  REQUIRE(machine.journal.end_step(id, {0, Outcome::done, {}, {}}));
  CHECK(machine.journal.load(id)->steps[0].ended);                           // the torn line was closed first
  test::put(steps, test::content_of(steps) + std::string(100, '\0') + "\n"); // as some file systems do
  CHECK(machine.journal.load(id)->steps[0].ended);
}

TEST_CASE("an entry that cannot be read stops undo: no older change is taken back in silence") {
  JournalMachine machine;
  const auto older = machine.record(one_step());
  const auto newest = machine.record(one_step());
  const auto plan = test::content_of(machine.at(newest, "plan.json"));
  const auto steps = test::content_of(machine.at(newest, "steps.jsonl"));
  const auto check_stops = [&](const std::string& why) {
    CAPTURE(why);
    CHECK(machine.state(newest) == JournalState::unreadable);
    CHECK_FALSE(machine.journal.load(newest)->damage.empty());
    const auto latest = machine.journal.find_latest();
    REQUIRE((latest && *latest));
    CHECK((*latest)->id == newest);
    CHECK((*latest)->state == JournalState::unreadable);
    CHECK(machine.journal.load(older)->state == JournalState::complete);
  };
  for (std::size_t size = 0; size + 2 < plan.size(); ++size) { // without its last "}\n"
    test::put(machine.at(newest, "plan.json"), plan.substr(0, size));
    check_stops("plan.json cut off at byte " + std::to_string(size));
  }
  test::put(machine.at(newest, "plan.json"), plan);
  for (std::size_t size = 0; size < steps.size(); ++size) {
    test::put(machine.at(newest, "steps.jsonl"), steps.substr(0, size));
    if (size < steps.find('\n')) {
      check_stops("steps.jsonl cut off at byte " + std::to_string(size));
    } else { // its first intent is there: it is the one to take back
      const auto latest = machine.journal.find_latest();
      REQUIRE(latest);
      CHECK((*latest)->id == newest);
    }
  }
  for (const auto* garbage : {"garbage", "[]\n", "{}\n", "{\"event\":\"end\",\"step\":99,\"outcome\":\"done\"}\n",
                              "{\"event\":\"begin\",\"step\":-1}\n", "{\"event\":\"finish\",\"outcomes\":[1,2,3]}\n",
                              "{\"event\":\"end\",\"step\":0,\"outcome\":\"done\"}\n",
                              "{\"event\":\"begin\",\"step\":0,\"action\":{\"kind\":\"of a later version\"}}\n"}) {
    test::put(machine.at(newest, "steps.jsonl"), garbage);
    check_stops(garbage);
    test::put(machine.at(newest, "steps.jsonl"), steps + garbage);
    if (*garbage == '{' && std::string_view(garbage).find("\"step\":0,\"outcome\"") == std::string_view::npos)
      check_stops(std::string("behind sound lines: ") + garbage);
  }
  fs::remove(machine.at(newest, "steps.jsonl"));
  check_stops("no steps.jsonl");
  test::put(machine.at(newest, "steps.jsonl"), steps);

  auto later = plan;
  later.replace(later.find("\"version\": 2"), 12, "\"version\": 3");
  for (const auto& text : {later, std::string("[1]"), std::string("{\"plan\":{\"steps\":7}}"),
                           std::string("{\"version\":2,\"plan\":{\"steps\":[{}]},\"pid\":\"x\"}")}) {
    test::put(machine.at(newest, "plan.json"), text);
    check_stops(text);
  }
  CHECK(machine.journal.load(newest)->damage != "");
  test::put(machine.at(newest, "plan.json"), later);
  CHECK(machine.journal.load(newest)->damage == "it was written by a later version of sharefs");
  fs::remove(machine.at(newest, "plan.json"));
  check_stops("no plan.json");
  CHECK(machine.record(one_step()) == "3"); // and the next change is not stopped by it
  CHECK((*machine.journal.find_latest())->id == "3");
}

TEST_CASE("a journal of another user's making is never read") {
  if (::geteuid() != 0)
    return;
  JournalMachine machine;
  machine.record(one_step());
  const auto state = machine.root.path() + "/var/lib/sharefs";
  const auto refuses = [&machine] {
    const auto latest = machine.journal.find_latest();
    return !latest || (*latest && (*latest)->state == JournalState::unreadable);
  };
  const auto chown = [](const std::string& path, uid_t uid) { return ::lchown(path.c_str(), uid, uid) == 0; };
  for (const auto& part : {state, state + "/journal", state + "/journal/1"}) {
    CAPTURE(part);
    REQUIRE(chown(part, 54321));
    CHECK(refuses());
    REQUIRE(chown(part, 0));
    fs::rename(part, part + ".real"); // a link to what is sound, too
    fs::create_directory_symlink(part + ".real", part);
    CHECK(refuses());
    fs::remove(part);
    fs::rename(part + ".real", part);
    ::chmod(part.c_str(), 0770);
    CHECK(refuses());
    ::chmod(part.c_str(), 0700);
    CHECK_FALSE(refuses());
  }
  for (const auto* name : {"plan.json", "steps.jsonl"}) {
    REQUIRE(chown(machine.at("1", name), 54321));
    CHECK(machine.state("1") == JournalState::unreadable);
    REQUIRE(chown(machine.at("1", name), 0));
    fs::rename(machine.at("1", name), machine.root.path() + "/elsewhere");
    fs::create_symlink(machine.root.path() + "/elsewhere", machine.at("1", name));
    CHECK(machine.state("1") == JournalState::unreadable);
    fs::remove(machine.at("1", name));
    REQUIRE(::mkfifo(machine.at("1", name).c_str(), 0600) == 0);
    CHECK(machine.state("1") == JournalState::unreadable); // and it does not wait for a writer
    fs::remove(machine.at("1", name));
    fs::rename(machine.root.path() + "/elsewhere", machine.at("1", name));
  }
  CHECK(machine.state("1") == JournalState::complete);
}

TEST_CASE("a forged journal that is exchanged for the real one all the time is never taken back") {
  if (::geteuid() != 0)
    return;
  JournalMachine machine;
  machine.record(one_step());
  const auto state = machine.root.path() + "/var/lib/sharefs";
  const auto forged = machine.root.path() + "/var/lib/forged";
  fs::copy(state, forged, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(forged))
    REQUIRE(::lchown(entry.path().c_str(), 54321, 54321) == 0);
  REQUIRE(::lchown(forged.c_str(), 54321, 54321) == 0);
  ::chmod(forged.c_str(), 0700);
  auto head = test::content_of(forged + "/journal/1/plan.json");
  head.replace(head.find("sharefs test"), 12, "FORGED");
  test::put(forged + "/journal/1/plan.json", head);
  const pid_t attacker = ::fork();
  if (attacker == 0)
    for (;;)
      ::renameat2(AT_FDCWD, state.c_str(), AT_FDCWD, forged.c_str(), RENAME_EXCHANGE);
  int read = 0;
  for (int i = 0; i < 300 || (read == 0 && i < 100'000); ++i) // on a busy machine few tries find the real one
    if (const auto entries = test::entries_of(machine.journal); entries && !entries->empty()) {
      ++read;
      REQUIRE(entries->front().command == "sharefs test");
    }
  ::kill(attacker, SIGKILL);
  ::waitpid(attacker, nullptr, 0);
  CHECK(read > 0);
}

#include "plan/apply.hpp"
#include "plan/directory_access.hpp"
#include "plan/journal.hpp"
#include "plan/perform.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

using namespace sharefs;
using namespace sharefs::plan;

namespace {

JournalStep step(std::size_t index, Outcome outcome) {
  return {index, true, true, outcome};
}
JournalStep cut_off(std::size_t index) {
  return {index, true, false};
}

std::vector<std::string> described(const Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& step : plan.steps)
    lines.push_back(step.group + ":" + describe(step.action));
  return lines;
}

const RunTool k_reload{{"exportfs", "-r"}, {}, true};

} // namespace

TEST_CASE("undo goes backwards through what took effect") {
  JournalEntry entry;
  entry.id = "ID";
  entry.plan.add("a", "one", make_directory("/d"));
  entry.plan.add("b", "two", Mount{"s:/x", "/m", "nfs", ""});
  entry.plan.add("a", "three", RunTool{{"start"}, {"stop"}});
  entry.plan.add("a", "four", make_link("/l", "t"));
  entry.plan.add("a", "five", make_link("/k", "t"));
  entry.plan.add("a", "six", make_link("/j", "t"));
  entry.steps = {step(0, Outcome::done), step(1, Outcome::unchanged), step(2, Outcome::failed), cut_off(3),
                 JournalStep{4},         step(5, Outcome::failed)};
  entry.steps[5].error = ErrorCode::conflict;
  const auto undo = plan_undo(entry);
  CHECK(undo.undoes == "ID");
  CHECK(described(undo) == std::vector<std::string>{"a:remove link /l -> t", "a:run `stop`", "a:remove directory /d"});
  CHECK(undo.steps[0].why == "undo: four");
  CHECK(undo.notes.empty());
}

TEST_CASE("a home that cannot be taken back does not stop the others") {
  JournalEntry entry;
  entry.id = "ID";
  entry.plan.add("", "store", make_directory("/store"));
  for (const auto* home : {"alice", "bob", "carol"}) {
    entry.plan.add(home, "one", make_link(std::string("/home/") + home, "/store"));
    entry.plan.add(home, "two", make_link(std::string("/home/") + home + "2", "/store"));
  }
  for (std::size_t i = 0; i < entry.plan.steps.size(); ++i)
    entry.steps.push_back(step(i, Outcome::done));
  const auto undo = plan_undo(entry);
  CHECK(undo.unnamed_last);
  CHECK(undo.steps.front() == Step{"carol", "undo: two", remove_link("/home/carol2", "/store")});
  CHECK(undo.steps.back() == Step{"", "undo: store", remove_directory("/store")});

  const test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  std::filesystem::create_directory(root.path() + "/home");
  const auto original = test::snapshot(root.path());
  REQUIRE(apply(entry.plan, system, journal, {}).ok());
  const auto changed = test::snapshot(root.path());
  std::filesystem::remove(root.path() + "/home/bob2");
  std::filesystem::create_symlink("/elsewhere", root.path() + "/home/bob2"); // by bob
  const auto id = (*journal.find_latest())->id;
  const auto report = apply(plan_undo(*journal.load(id)), system, journal, {});
  CHECK_FALSE(report.ok());
  for (const auto* gone : {"/home/alice", "/home/alice2", "/home/carol", "/home/carol2"})
    CHECK_FALSE(std::filesystem::is_symlink(root.path() + gone));
  CHECK(std::filesystem::is_symlink(root.path() + "/home/bob"));
  CHECK(std::filesystem::exists(root.path() + "/store")); // a home still leads there

  // Once bob's is as it was, a second undo takes back the rest, and undo of both brings all of it again.
  std::filesystem::remove(root.path() + "/home/bob2");
  std::filesystem::create_symlink("/store", root.path() + "/home/bob2");
  const auto rest = plan_undo(*journal.load(id), *journal.find_undos(id));
  CHECK(rest.steps.size() == 3);
  const auto second = apply(rest, system, journal, {});
  CHECK(second.ok());
  CHECK(test::snapshot(root.path()) == original);
  const auto redo = plan_undo(*journal.load(second.journal_id));
  CHECK_FALSE(redo.unnamed_last);
  REQUIRE(redo.steps.front().group.empty());
}

TEST_CASE("reloads are run again once, at the end") {
  JournalEntry entry;
  entry.plan.add("", "write", File{"/x", std::nullopt, "a", 0644});
  entry.plan.add("", "reload", k_reload);
  entry.plan.add("", "write", File{"/y", std::nullopt, "a", 0644});
  entry.plan.add("", "reload", k_reload);
  entry.steps = {step(0, Outcome::done), step(1, Outcome::done), step(2, Outcome::done), cut_off(3)};
  CHECK(described(plan_undo(entry)) == std::vector<std::string>{":remove /y", ":remove /x", ":run `exportfs -r`"});
  entry.steps = {JournalStep{0}, step(1, Outcome::done), JournalStep{2}, JournalStep{3}};
  CHECK(plan_undo(entry).empty()); // a reload alone takes nothing back
}

TEST_CASE("what has no inverse becomes a note") {
  JournalEntry entry;
  entry.plan.add("", "", RunTool{{"mkfs", "/dev/x"}, {}});
  entry.plan.add("", "", RemoveTree{"/cache", 1, 2});
  entry.plan.add("", "", SetAccess{"/d", Access{0, 0, 0755, ""}, Access{0, 0, 0755, ""}});
  entry.steps = {step(0, Outcome::done), cut_off(1), step(2, Outcome::done)};
  const auto undo = plan_undo(entry);
  CHECK(undo.notes == std::vector<std::string>{"cannot be undone: delete /cache with all in it",
                                               "cannot be undone: run `mkfs /dev/x`"});
  CHECK(undo.steps.empty());
}

TEST_CASE("a second undo goes on where the first was cut off") {
  JournalEntry entry;
  entry.id = "ID";
  entry.plan.add("", "", make_directory("/d"));
  entry.plan.add("", "", File{"/d/f", std::nullopt, "a", 0644});
  entry.plan.add("", "", File{"/d/f", "a", "b", 0644});
  entry.plan.add("", "", k_reload);
  entry.steps = {step(0, Outcome::done), step(1, Outcome::done), step(2, Outcome::done), step(3, Outcome::done)};
  JournalEntry attempt;
  attempt.plan = plan_undo(entry);
  REQUIRE(attempt.plan.steps.size() == 4);
  attempt.steps = {step(0, Outcome::done), cut_off(1), JournalStep{2}, JournalStep{3}};
  CHECK(described(plan_undo(entry, {attempt})) ==
        std::vector<std::string>{":remove /d/f", ":remove directory /d", ":run `exportfs -r`"});
  JournalEntry second;
  second.plan = plan_undo(entry, {attempt});
  second.steps = {step(0, Outcome::unchanged), step(1, Outcome::done), cut_off(2)};
  // All is back but the reload, and that is worth one more run.
  CHECK(described(plan_undo(entry, {second, attempt})) == std::vector<std::string>{":run `exportfs -r`"});
  attempt.state = JournalState::undone; // its work was taken back: it counts no more
  CHECK(plan_undo(entry, {attempt}).steps.size() == 4);
}

TEST_CASE("apply marks what was undone, and undo of undo brings it back") {
  test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  test::put(root.path() + "/f", "before");
  const auto initial = test::snapshot(root.path());
  Plan plan;
  plan.add("", "w", File{"/f", "before", "after", 0644});
  plan.add("", "w", make_directory("/d"));
  plan.add("", "w", SetAccess{"/d", {}, Access{::geteuid(), ::getegid(), 01777, ""}});
  plan.add("", "w", Mount{"s:/x", "/d", "nfs", ""});
  REQUIRE(apply(plan, system, journal, {}).ok());
  const auto changed = test::snapshot(root.path());

  const auto undo = [&](const std::string& id) {
    const auto entry = journal.load(id);
    REQUIRE(entry);
    const auto report = apply(plan_undo(*entry, *journal.find_undos(id)), system, journal, {});
    REQUIRE(report.ok());
    return report.journal_id;
  };
  const auto id = (*journal.find_latest())->id;
  const auto undo_id = undo(id);
  CHECK(test::snapshot(root.path()) == initial);
  CHECK(system.machine.mounts.at("/d") == nullptr);
  CHECK(journal.load(id)->state == JournalState::undone);
  CHECK(journal.load(id)->undone_by == undo_id);
  CHECK(*journal.find_latest() == std::nullopt);

  undo(undo_id);
  CHECK(test::snapshot(root.path()) == changed);
  CHECK(system.machine.mounts.at("/d") != nullptr);
  CHECK(journal.load(id)->state == JournalState::complete);
  undo(id);
  CHECK(test::snapshot(root.path()) == initial);
}

TEST_CASE(
    "a directory that is in use keeps its access when the change that made it is undone, and the undo is complete") {
  test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  const auto gid = ::geteuid() == 0 ? 54322 : ::getegid();
  Plan plan;
  plan.add("a", "", make_directory("/d"));
  plan.add("a", "", SetAccess{"/d", {}, Access{::geteuid(), gid, 02770, "u::rwx,g::rwx,o::---"}});
  plan.add("a", "", File{"/exports", std::nullopt, "x", 0644});
  plan.add("a", "", k_reload);
  REQUIRE(apply(plan, system, journal, {}).ok());
  const auto changed = test::snapshot(root.path());
  const auto undo = [&](const std::string& id) {
    const auto report = apply(plan_undo(*journal.load(id), *journal.find_undos(id)), system, journal, {});
    CHECK(report.ok());
    return report.journal_id;
  };
  // Empty it goes, and comes back as it was.
  const auto empty = undo("1");
  CHECK_FALSE(std::filesystem::exists(root.path() + "/d"));
  undo(empty);
  CHECK(test::snapshot(root.path()) == changed);
  const auto access = read_access(system, "/d", true);
  REQUIRE(access);
  CHECK(tree::same_acl(access->access.default_acl, "u::rwx,g::rwx,o::---"));

  test::put(root.path() + "/d/secret", "");
  undo("1");
  CHECK(read_access(system, "/d", true)->access == access->access);
  CHECK_FALSE(std::filesystem::exists(root.path() + "/exports"));
  CHECK(system.calls().back() == "run exportfs -r");
  CHECK(journal.load("1")->state == JournalState::undone);
}

TEST_CASE("an undo that was cut off leaves alone what was made anew at the place of a directory that it removed") {
  test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  Plan plan;
  plan.add("a", "", make_directory("/d"));
  plan.add("b", "", make_link("/l", "t"));
  REQUIRE(apply(plan, system, journal, {}).ok());
  ::chmod((root.path() + "/d").c_str(), 0700); // not as it was made
  auto attempt = plan_undo(*journal.load("1"));
  std::filesystem::remove(root.path() + "/l");
  std::filesystem::create_symlink("u", root.path() + "/l");
  CHECK_FALSE(apply(attempt, system, journal, {}).ok());
  CHECK(described(plan_undo(*journal.load("1"), *journal.find_undos("1"))) ==
        std::vector<std::string>{"b:remove link /l -> t"});
}

TEST_CASE("undo stops at what somebody else has changed since") {
  test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  Plan plan;
  plan.add("", "w", File{"/f", std::nullopt, "ours", 0644});
  REQUIRE(apply(plan, system, journal, {}).ok());
  test::put(root.path() + "/f", "theirs");
  const auto entry = *journal.find_latest();
  const auto report = apply(plan_undo(*entry), system, journal, {});
  CHECK_FALSE(report.ok());
  CHECK(report.results[0].error->code == ErrorCode::conflict);
  CHECK(test::content_of(root.path() + "/f") == "theirs");
  CHECK(journal.load(entry->id)->state == JournalState::complete);
}

TEST_CASE("what a later run has done again is taken back by a second undo") {
  test::TemporaryRoot root;
  test::ScriptedSystem system(root.path(), test::willing_machine());
  const Journal journal(system.files(), "/state");
  const auto run = [&](const Plan& plan) { return apply(plan, system, journal, {}).journal_id; };
  const auto undo_of = [&](const std::string& id) { return plan_undo(*journal.load(id), *journal.find_undos(id)); };
  Plan plan, again;
  plan.add("a", "", make_link("/a", "x"));
  plan.add("b", "", make_link("/b", "x"));
  again.add("a", "", make_link("/a", "x"));
  const auto first = run(plan);
  std::filesystem::remove(root.path() + "/b");
  std::filesystem::create_symlink("y", root.path() + "/b"); // so the first undo ends in part
  run(undo_of(first));
  CHECK(described(undo_of(first)) == std::vector<std::string>{"b:remove link /b -> x"});
  const auto second = run(again);
  CHECK(described(undo_of(first)) == std::vector<std::string>{"b:remove link /b -> x", "a:remove link /a -> x"});
  run(undo_of(second)); // together they have changed nothing
  CHECK(described(undo_of(first)) == std::vector<std::string>{"b:remove link /b -> x"});
}

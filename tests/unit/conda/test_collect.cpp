// Generations as plans: what is switched, kept and deleted.
#include "conda/collect.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

SharedEnvironment three_generations(unsigned current = 3) {
  SharedEnvironment environment{.store = "/s", .name = "llm"};
  environment.current = current;
  environment.entry.link_target = generation_link("llm", current);
  environment.root.path = "/s/.generations/llm";
  for (const unsigned number : {1U, 2U, 3U}) {
    StoredGeneration one{.number = number};
    one.entry.path = environment.path(number);
    one.entry.device = 1;
    one.entry.inode = 10 + number;
    one.record.emplace().number = number;
    one.record_entry.path = one.entry.path + ".json";
    one.record_entry.kind = sys::EntryKind::file;
    one.record_entry.content = "{}";
    environment.generations.push_back(one);
  }
  return environment;
}

std::vector<std::string> lines_of(const plan::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& step : plan.steps)
    lines.push_back(plan::describe(step.action));
  return lines;
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("requirement 3: a switch is a rename and one link", "[generations]") {
  CHECK(lines_of(plan_switch(three_generations(), 4, "new-0004.abcdef")) ==
        Lines{"rename /s/.generations/llm/new-0004.abcdef to /s/.generations/llm/0004",
              "point link /s/llm to .generations/llm/0004 instead of .generations/llm/0003"});
}

TEST_CASE("requirement 3: rollback replaces one link", "[generations]") {
  const auto environment = three_generations();
  CHECK(previous_generation(environment) == 2);
  CHECK(previous_generation(three_generations(1)) == 0);
  CHECK(lines_of(*plan_rollback(environment, 1)) ==
        Lines{"point link /s/llm to .generations/llm/0001 instead of .generations/llm/0003"});
  CHECK(plan_rollback(environment, 3)->empty());
  const auto missing = plan_rollback(environment, 7);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().hint == "there are: 1, 2, 3");
}

TEST_CASE("rollback says what it changes in the packages", "[generations]") {
  auto environment = three_generations();
  environment.generations[0].record->packages = {{"numpy", "1.26", "0"}, {"old", "1", "0"}};
  environment.generations[2].record->packages = {{"new", "2", "0"}, {"numpy", "2.0", "0"}};
  CHECK(plan_rollback(environment, 1)->notes == Lines{"new: 2 0 -> -", "numpy: 2.0 0 -> 1.26 0", "old: - -> 1 0"});
}

TEST_CASE("rollback goes to what the present generation was made from", "[generations]") {
  auto environment = three_generations();
  environment.generations[2].record->parent = 1; // 2 was rejected
  CHECK(previous_generation(environment) == 1);
  environment.generations[2].record->parent = 2;
  environment.generations.erase(environment.generations.begin() + 1); // by gc
  CHECK(previous_generation(environment) == 1);
  environment.generations[1].record->parent = 1;
  environment.generations[0].record->parent = 0;
  environment.current = 1; // the later one is none before it
  CHECK(previous_generation(environment) == 0);
}

TEST_CASE("a number that was used is not used again", "[generations]") {
  auto environment = three_generations();
  CHECK(environment.next() == 4);
  environment.highest = 7;
  CHECK(environment.next() == 8);
  for (const auto* name : {"0005", "0005.json", "0005.pinned", "new-0005.abcdef", "old-0005.abcdef"})
    CHECK(used_number(name) == 5U);
  for (const auto* name : {"uses", "lock", "5", "0000", "new-0005", "x0005.json"})
    CHECK(used_number(name) == std::nullopt);
}

TEST_CASE("what a switch made stays when the switch is taken back", "[generations]") {
  auto plan = plan_switch(three_generations(), 4, "new-0004.abcdef");
  plan::JournalEntry entry;
  entry.id = "1";
  entry.plan = plan;
  entry.steps = {{0, true, true, plan::Outcome::done}, {1, true, true, plan::Outcome::done}};
  CHECK(lines_of(plan::plan_undo(entry)) ==
        Lines{"point link /s/llm to .generations/llm/0003 instead of .generations/llm/0004"});
}

TEST_CASE("rollback brings back an environment whose name or present generation is gone", "[generations]") {
  auto environment = three_generations();
  environment.generations.pop_back();
  CHECK(previous_generation(environment) == 2);
  environment.current = 0; // STORE/ENV is gone
  environment.entry.kind = sys::EntryKind::missing;
  CHECK(environment.lost_its_name());
  CHECK(previous_generation(environment) == 2);
  CHECK(lines_of(*plan_rollback(environment, 2)) == Lines{"link /s/llm -> .generations/llm/0002"});
  environment.generations.clear();
  CHECK_FALSE(environment.lost_its_name());
}

TEST_CASE("gc keeps the present generation, pinned ones, those in use, and the last", "[generations]") {
  auto environment = three_generations(2);
  const auto reasons = [&](const std::vector<Use>& live, unsigned keep) {
    Lines found;
    for (const auto& one : decide_kept(environment, live, keep))
      found.push_back(one.reason);
    return found;
  };
  CHECK(reasons({}, 1) == Lines{"", "current", "one of the last 1"});
  CHECK(reasons({}, 3) == Lines{"one of the last 3", "current", "one of the last 3"});
  CHECK(reasons({{"n1", 12, 99, 1}}, 1) == Lines{"used by process 12 on n1", "current", "one of the last 1"});
  environment.generations[0].pinned = "paper";
  CHECK(reasons({}, 1) == Lines{"pinned: paper", "current", "one of the last 1"});
  environment.generations[2].record.reset(); // one without a record is none of the last
  environment.generations[2].problem = "was written by a newer sharefs";
  CHECK(reasons({}, 1) == Lines{"pinned: paper", "current", "its record was written by a newer sharefs"});
  environment.generations[2].record_entry.kind = sys::EntryKind::missing;
  CHECK(reasons({}, 1) == Lines{"pinned: paper", "current", ""});
}

TEST_CASE("gc deletes what was seen, out of sight first", "[generations]") {
  const auto environment = three_generations();
  sys::Entry left;
  left.path = "/s/.generations/llm/new-0004.zzzzzz";
  left.kind = sys::EntryKind::directory;
  left.inode = 77;
  const auto plan = plan_collect(environment, {{1, ""}, {2, "pinned"}, {3, "current"}}, "abcdef", {left});
  CHECK(lines_of(plan) == Lines{"point link /s/llm to .generations/llm/0003 instead of .generations/llm/0003",
                                "remove /s/.generations/llm/0001.json",
                                "rename /s/.generations/llm/0001 to /s/.generations/llm/old-0001.abcdef",
                                "delete /s/.generations/llm/old-0001.abcdef with all in it",
                                "delete /s/.generations/llm/new-0004.zzzzzz with all in it"});
  const auto* removed = std::get_if<plan::RemoveTree>(&plan.steps[3].action);
  REQUIRE(removed != nullptr);
  CHECK(removed->inode == 11);
  CHECK(plan_collect(environment, {{1, "pinned"}, {3, "current"}}, "abcdef", {}).empty());
}

TEST_CASE("gc gives back what undo has made the present one, or somebody has pinned, after it was hidden",
          "[generations]") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  auto now = three_generations();
  const auto answer = [&] {
    const auto checked = check_unused(system, now, {}, {{1, ""}, {2, "pinned"}, {3, "current"}});
    return checked ? "" : checked.error().message;
  };
  CHECK(answer().empty());
  now.root.names = {"0001.pinned", "0002.pinned"};
  CHECK(answer() == "/s/.generations/llm/0001.pinned was made since");
  now.root.names = {};
  now.current = 2;
  CHECK(answer().empty());
  now.current = 1;
  CHECK(answer() == "/s/llm leads to generation 1 since");
}

TEST_CASE("a link to a generation is made only if that exists", "[generations]") {
  auto environment = three_generations();
  for (const auto& plan : {plan_switch(environment, 4, "new-0004.abcdef"), *plan_rollback(environment, 1)})
    CHECK(std::get<plan::Link>(plan.steps.back().action).checked);
  environment.current = 0;
  CHECK(std::get<plan::Link>(plan_rollback(environment, 1)->steps.back().action).checked);
}

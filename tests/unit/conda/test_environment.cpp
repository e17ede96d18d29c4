#include "conda/environment.hpp"

#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

const EnvironmentRequest k_request{.path = "/data/llm"};

PrefixUse use(const std::string& prefix, Leads leads, std::size_t files, bool certain = false) {
  return {prefix, leads, certain, files};
}

EnvironmentState state_with(std::vector<Found> found) {
  EnvironmentState state;
  state.path = "/data/llm";
  state.packages = 1;
  state.inode = 7;
  state.decision.right = "/data/llm";
  state.found = std::move(found);
  return state;
}

plan::FileChange removed(const std::string& path) {
  plan::FileChange change;
  change.path = path;
  change.removed = true;
  return change;
}

} // namespace

TEST_CASE("requirement 5: which prefix is right, and which are replaced", "[environment]") {
  struct Row {
    std::vector<PrefixUse> uses;
    PrefixDecision decision;
  };
  const auto row = GENERATE(values<Row>({
      {{}, {"/data/llm", {}, {}}},
      {{use("/data/llm", Leads::here, 3)}, {"/data/llm", {}, {}}},
      // moved
      {{use("/old/llm", Leads::nowhere, 3)}, {"/data/llm", {"/old/llm"}, {}}},
      // by a link: the path that users have
      {{use("/home/a/envs/llm", Leads::here, 3)}, {"/home/a/envs/llm", {}, {}}},
      {{use("/home/a/envs/llm", Leads::here, 3), use("/data/llm", Leads::here, 1)},
       {"/home/a/envs/llm", {"/data/llm"}, {}}},
      {{use("/home/a/envs/llm", Leads::here, 1), use("/data/llm", Leads::here, 1)},
       {"/data/llm", {"/home/a/envs/llm"}, {}}},
      // copied: the original is still there
      {{use("/old/llm", Leads::environment, 3, true)}, {"/data/llm", {"/old/llm"}, {}}},
      // another environment, which may be meant
      {{use("/data/llm", Leads::here, 9), use("/data/tools", Leads::environment, 1)},
       {"/data/llm", {}, {"/data/tools"}}},
      // above: cannot be told apart
      {{use("/data", Leads::nowhere, 3, true)}, {"/data/llm", {}, {"/data"}}},
      // the longest first
      {{use("/old/a", Leads::nowhere, 3), use("/old/a/envs/b", Leads::nowhere, 3)},
       {"/data/llm", {"/old/a/envs/b", "/old/a"}, {}}},
  }));
  CHECK(decide_prefixes(row.uses, k_request) == row.decision);
}

TEST_CASE("requirement 5: a prefix that is asked for", "[environment]") {
  auto request = k_request;
  request.prefix = "/stable/llm";
  request.from = {"/data/tools"};
  CHECK(decide_prefixes({use("/data/llm", Leads::here, 3), use("/data/tools", Leads::environment, 1)}, request) ==
        PrefixDecision{"/stable/llm", {"/data/tools", "/data/llm"}, {}});
}

TEST_CASE("requirement 15: one diagnosis for each kind", "[environment]") {
  const auto state = state_with({{Kind::missing, "bin/a", "p"},
                                 {Kind::missing, "bin/b\n", "p"},
                                 {Kind::missing, "c", "q"},
                                 {Kind::missing, "d", ""},
                                 {Kind::unmanaged, "x", ""}});
  const auto found = diagnose(state);
  REQUIRE(found.size() == 2);
  CHECK((found[0].code == "SF501" && found[0].severity == Severity::error));
  CHECK(found[0].message == "4 files of conda's packages missing: bin/a (p), bin/b\\n (p), c (q) and 1 more");
  CHECK((found[1].code == "SF518" && found[1].severity == Severity::info));
}

TEST_CASE("requirement 15: every kind has its text, and only errors fail", "[environment]") {
  for (int kind = 0; kind <= static_cast<int>(Kind::unmanaged); ++kind) {
    const auto found = diagnose(state_with({{static_cast<Kind>(kind), "x", ""}}));
    REQUIRE(found.size() == 1);
    CHECK(found[0].message.find('%') == std::string::npos);
    CHECK(found[0].message.starts_with("1 "));
  }
}

TEST_CASE("requirement 15: what a repair leaves", "[environment]") {
  auto state = state_with({{Kind::closed, "a", "0600"}, {Kind::closed, "b", "0600"}, {Kind::stale_pyc, "c", ""}});
  state.modes = {{"a", "", "", {}, 0600U, 0644U}};
  const auto left = diagnose_unrepaired(state);
  REQUIRE(left.size() == 1);
  CHECK(left[0].message == "1 path that not everybody can read who may enter the environment: b (0600)");
}

TEST_CASE("in a generation nothing is installed: hints go by an update", "[environment]") {
  auto state = state_with({{Kind::missing, "bin/a", "p"}, {Kind::editable, "x.pth", ""}});
  CHECK(diagnose(state)[0].hint == "install their packages again: `conda install --force-reinstall NAME`");
  state.shared = "llm";
  CHECK(diagnose(state)[0].hint ==
        "install their packages again: `sharefs conda update llm -- conda install --force-reinstall NAME`");
  CHECK(diagnose(state)[1].hint ==
        "install the project itself: `sharefs conda update llm -- pip install .` without `-e`");
}

TEST_CASE("a directory above a generation that lets nobody in is told", "[environment]") {
  auto state = state_with({});
  CHECK(diagnose(state).empty());
  state.closed_above = "/data";
  REQUIRE(diagnose(state).size() == 1);
  CHECK(diagnose(state)[0].code == "SF308");
  CHECK(diagnose(state)[0].subject == "/data");
}

TEST_CASE("requirement 11: who compiles again", "[environment]") {
  auto state = state_with({});
  CHECK(plan_repair(state, true, true).empty());
  state.compiled = {removed("lib/python3.11/__pycache__/a.pyc"), removed("share/x.pyc")};
  state.python = "bin/python3.11";
  state.uid = 1001;
  state.gid = 2002; // of a directory with the set-group-id bit, say
  state.python_identity = {7, 12, 1001U, 1001U, 0100000, 17};
  const auto repair = plan_repair(state, true, true);
  REQUIRE(repair.steps.size() == 2);
  CHECK_FALSE(plan::invert(repair.steps[0].action)); // what is deleted is not kept
  const auto& tool = std::get<plan::RunTool>(repair.steps[1].action);
  CHECK((tool.actor && tool.actor->user.uid == 1001));
  CHECK(tool.actor->user.groups == std::vector<gid_t>{65534}); // attack: the owner is given the directory's group
  CHECK(tool.argv.back() == "lib/python3.11");                 // in the directory that the program is run in
  REQUIRE(tool.program);
  CHECK((tool.program->directory == "/data/llm" && tool.program->directory_identity.inode == 7));
  CHECK(tool.program->identity == sys::FileIdentity{7, 12, 1001U, 1001U, 0100000, 0});
  CHECK(plan_repair(state, true, false).steps.size() == 1); // another root
  state.uid = 0;
  CHECK(plan_repair(state, true, true).steps.size() == 2);
  state.contents = {{"bin/python3.11", "a", "b", {}, {}, {}}}; // written anew before: another file
  CHECK(std::get<plan::RunTool>(plan_repair(state, true, true).steps.back().action).program->identity ==
        sys::FileIdentity{.uid = 1001U, .gid = 1001U, .kind = 0100000});
  state.contents.clear();
  state.uid = GENERATE(0U, 1001U);
  state.others_write = true; // nobody runs a program of theirs
  CHECK(plan_repair(state, true, true).steps.size() == 1);
  CHECK(plan_repair(state, true, true).notes.size() == 1);
}

TEST_CASE("a program that is called like no version of Python is of no known one", "[environment]") {
  auto state = state_with({});
  state.compiled = {removed("lib/python3.11/__pycache__/a.pyc")};
  for (const auto* name : {"bin/python3.", "bin/python3..", "bin/python3"}) { // whoever may write there chooses it
    state.python = name;
    const auto repair = plan_repair(state, true, true);
    REQUIRE(repair.steps.size() == 2);
    const auto& argv = std::get<plan::RunTool>(repair.steps[1].action).argv;
    CHECK(std::ranges::find(argv, "-p") == argv.end());
  }
}

TEST_CASE("requirement 9: relocate changes no modes", "[environment]") {
  auto state = state_with({});
  state.modes = {{"a", "", "", {}, 0600U, 0644U}};
  state.links = {{"lib/x", "/old/lib/y", "/data/llm/lib/y"}};
  CHECK(plan_repair(state, true, true).steps.size() == 2);
  const auto relocate = plan_repair(state, false, true);
  REQUIRE(relocate.steps.size() == 1);
  CHECK(plan::describe(relocate.steps[0].action) ==
        "point link /data/llm/lib/x to /data/llm/lib/y instead of /old/lib/y");
}

TEST_CASE("a path that nobody could read has its own cure", "[environment]") {
  EnvironmentState state;
  state.packages = 1;
  const auto hint = [&](const std::string& reason) {
    state.found = {{Kind::unreadable, "share/x", reason}};
    return diagnose(state).front().hint;
  };
  CHECK(hint(errno_text(EACCES)).starts_with("run it as the owner"));
  CHECK(hint(errno_text(EXDEV)).starts_with("something is mounted there"));
  CHECK(hint(errno_text(ENAMETOOLONG)).starts_with("its directories are nested deeper"));
}

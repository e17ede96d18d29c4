#include "conda/prefix.hpp"
#include "conda/running.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

} // namespace

TEST_CASE("requirement 4: a path in a generation is known by its form", "[conda]") {
  CHECK(in_generation("/s/.generations/llm/0003") == GenerationPath{"/s", "llm", 3, ""});
  CHECK(in_generation("/s/.generations/llm/0003/bin/python") == GenerationPath{"/s", "llm", 3, "bin/python"});
  for (const char* other :
       {"/s/llm", "/s/.generations/llm", "/s/.generations/llm/3", "/s/.generations/llm/new-0004.abcdef",
        "/s/.generations//0003", "/.generations/llm/0003", "/s/.generations/llm/0003x"})
    CHECK_FALSE(in_generation(other));
}

TEST_CASE("requirement 4: a switch in the middle of the look does not mix two generations", "[conda]") {
  const test::TemporaryDirectory root;
  for (const std::string number : {"0001", "0002"}) {
    const auto generation = "s/.generations/llm/" + number;
    root.write(generation + "/conda-meta/state", R"({"env_vars": {"NUMBER": ")" + number + "\"}}");
    root.write(generation + "/etc/conda/activate.d/" + number + ".sh", "");
  }
  std::filesystem::create_symlink(".generations/llm/0001", root / "s/llm");
  test::ScriptedSystem system(root.path());
  std::size_t looks = 0;
  system.machine.on_entry = [&](const sys::EntryQuery& query, const std::optional<sys::User>&) {
    std::optional<sys::Entry> before;
    if (query.path != "/s/llm" || !query.follow || looks++ > 0) // the link itself was looked at before
      return before;
    before = system.files().entry(query);
    std::filesystem::remove(root / "s/llm");
    std::filesystem::create_symlink(".generations/llm/0002", root / "s/llm");
    return before;
  };
  const auto of = [](const std::string& number) {
    const auto prefix = "/s/.generations/llm/" + number;
    return std::tuple(prefix, std::vector{std::pair<std::string, std::string>("NUMBER", number)},
                      std::vector{prefix + "/etc/conda/activate.d/" + number + ".sh"});
  };
  for (const std::string number : {"0001", "0002"}) {
    const auto place = probe_running(system, "/s/llm");
    REQUIRE(place);
    CHECK(std::tuple(place->prefix, place->variables, place->scripts) == of(number));
  }
}

TEST_CASE("requirement 4: the use is noted before anything of the generation is read", "[conda]") {
  const test::TemporaryDirectory root;
  for (const std::string number : {"0001", "0002"})
    root.write("s/.generations/llm/" + number + "/conda-meta/history", "");
  std::filesystem::create_directory(root / "s/.generations/llm/uses");
  std::filesystem::create_directory_symlink(".generations/llm/0001", root / "s/llm");
  const auto note = use_note("node1", 12, 34);
  test::ScriptedSystem system(root.path());
  const auto noted = [&] { return system.entry({.path = "/s/.generations/llm/uses", .list = true}).names; };
  SECTION("in the generation that the link leads to") {
    const auto place = probe_running(system, "/s/llm", note);
    REQUIRE(place);
    CHECK(place->noted);
    CHECK(noted() == std::vector{use_name({"node1", 12, 34, 1})});
    CHECK_FALSE(probe_running(system, "/s/.generations/llm/0002")->noted);
  }
  SECTION("of one that is deleted after the first look, the next one is taken") {
    std::size_t looks = 0;
    system.machine.on_entry = [&](const sys::EntryQuery& query, const std::optional<sys::User>&) {
      std::optional<sys::Entry> before;
      if (query.path != "/s/llm" || looks++ > 0)
        return before;
      before = system.files().entry(query);
      std::filesystem::remove(root / "s/llm");
      std::filesystem::create_directory_symlink(".generations/llm/0002", root / "s/llm");
      std::filesystem::remove_all(root / "s/.generations/llm/0001");
      return before;
    };
    const auto place = probe_running(system, "/s/llm", note);
    REQUIRE(place);
    CHECK(place->prefix == "/s/.generations/llm/0002");
    CHECK(std::ranges::count(noted(), use_name({"node1", 12, 34, 2})) == 1);
  }
}

TEST_CASE("variables of an environment are bounded, for each and for all", "[conda]") {
  const auto many = [](const std::string& letter, int count) {
    std::string members;
    for (int i = 0; i < count; ++i)
      members += fmt::format("{}\"{}{}\": \"\"", i == 0 ? "" : ",", letter, i);
    return "{" + members + "}";
  };
  CHECK(variables_in(many("A", 1000))->size() == 1000);
  CHECK(variables_in(many("A", 1001)).error().message == "it holds an object with more than 1000 members");
  CHECK(variables_in(many("A", 50'000)).error().code == ErrorCode::failed);
  const test::TemporaryDirectory root;
  root.write("e/conda-meta/history", "");
  root.write("e/etc/conda/env_vars.d/a.json", many("A", 600));
  root.write("e/etc/conda/env_vars.d/b.json", many("B", 600));
  root.write("e/etc/conda/env_vars.d/c.json", many("C", 100));
  test::ScriptedSystem system(root.path());
  const auto place = probe_running(system, "/e");
  REQUIRE(place);
  CHECK(place->variables.size() == 700);
  REQUIRE(place->found.size() == 1);
  CHECK(place->found[0].message == "its variables are not set: there are more than 1000 of all files");
}

TEST_CASE("activation sets what conda sets", "[conda]") {
  RunningPlace place;
  place.prefix = "/s/.generations/llm/0001";
  place.variables = {{"A", "package"}, {"A", "state"}};
  SECTION("with nothing active") {
    const auto after = activate({"PATH=/usr/bin:/bin", "HOME=/h"}, place, "llm");
    CHECK(after == std::vector<std::string>{"PATH=/s/.generations/llm/0001/bin:/usr/bin:/bin", "HOME=/h",
                                            "CONDA_PREFIX=/s/.generations/llm/0001", "CONDA_SHLVL=1",
                                            "CONDA_DEFAULT_ENV=llm", "CONDA_PROMPT_MODIFIER=(llm) ", "A=state"});
  }
  SECTION("another environment leaves PATH, and is noted") {
    const auto after = activate({"PATH=/c/bin:/usr/bin", "CONDA_PREFIX=/c", "CONDA_SHLVL=1"}, place, "llm");
    CHECK(has(after, "PATH=/s/.generations/llm/0001/bin:/usr/bin"));
    CHECK(has(after, "CONDA_PREFIX_1=/c"));
    CHECK(has(after, "CONDA_SHLVL=2"));
  }
  SECTION("without PATH programs of the system are found") {
    CHECK(has(activate({}, place, "llm"), "PATH=/s/.generations/llm/0001/bin:/usr/local/bin:/usr/bin:/bin"));
  }
}

TEST_CASE("a program that changes an environment changes nothing else", "[conda]") {
  const auto environment = environment_for_changes(
      {"PATH=/other/bin:/usr/bin", "HOME=/h", "PYTHONPATH=/x", "PIP_TARGET=/y", "CONDA_PREFIX=/other", "CONDA_SHLVL=3"},
      "/s/llm", "llm");
  CHECK(environment == std::vector<std::string>{"PATH=/s/llm/bin:/usr/bin", "HOME=/h", "CONDA_PREFIX=/s/llm",
                                                "CONDA_SHLVL=1", "CONDA_DEFAULT_ENV=llm",
                                                "CONDA_PROMPT_MODIFIER=(llm) ", "PYTHONNOUSERSITE=1"});
}

TEST_CASE("variables of a state file are texts", "[conda]") {
  CHECK(variables_in(R"({"env_vars": {"A": "1", "B": "***unset***"}})", "env_vars")->size() == 1);
  CHECK(variables_in(R"({"version": 1})", "env_vars")->empty());
  for (const char* wrong :
       {"", "[]", R"({"env_vars": []})", R"({"env_vars": {"A": 1}})", R"({"env_vars": {"A=B": "1"}})",
        R"({"env_vars": {"A": "x\u0000y"}})", R"({"env_vars": {"": "1"}})"})
    CHECK_FALSE(variables_in(wrong, "env_vars"));
  CHECK(variables_in(R"({"A": "1"})")->front().second == "1");
}

TEST_CASE("what scripts leave is the environment, but for the shell's own", "[conda]") {
  using namespace std::string_literals;
  const auto after = apply_script_output({"PWD=/w", "SHLVL=1", "GONE=1", "KEPT=1"},
                                         "KEPT=2\0NEW=a\nb\0SHLVL=2\0_=/usr/bin/env\0PWD=/\0"s);
  CHECK(after == std::vector<std::string>{"KEPT=2", "NEW=a\nb", "PWD=/w", "SHLVL=1"});
}

TEST_CASE("the interpreter of a script", "[conda]") {
  CHECK(interpreter_of("#!/e/bin/python\n") == Argv{"/e/bin/python"});
  CHECK(interpreter_of("#! /e/bin/python -I -u \nx") == Argv{"/e/bin/python", "-I -u"});
  CHECK(interpreter_of("#!/bin/sh\n'''exec' \"/e x/bin/python\" \"$0\" \"$@\"\n' '''\n") == Argv{"/e x/bin/python"});
  CHECK(interpreter_of("#!/bin/sh\n'''exec' /e/bin/python -I \"$0\" \"$@\"\n' '''\n") == Argv{"/e/bin/python", "-I"});
  CHECK(interpreter_of("#!/bin/sh\necho\n") == Argv{"/bin/sh"});
  CHECK(interpreter_of("#!/bin/sh\n'''exec' \"/e/bin/python\n") == Argv{"/bin/sh"});
  CHECK(interpreter_of("\x7f"
                       "ELF")
            .empty());
  CHECK(interpreter_of("").empty());
  CHECK(interpreter_of("#!\n").empty());
}

TEST_CASE("a program is of an environment by whatever path it came", "[conda]") {
  const test::TemporaryDirectory root;
  for (const std::string store : {"s", "other"})
    root.write(store + "/.generations/llm/0001/bin/python", "");
  std::filesystem::create_directory_symlink("s", root / "seen"); // for a bind mount, which only root could make
  test::ScriptedSystem system(root.path());
  const auto entry = system.entry({.path = "/s/.generations/llm", .follow = true});
  const auto program = [](int pid, const std::string& path) { return RunningProgram{pid, *in_generation(path)}; };
  std::vector<int> pids;
  for (const auto& one : programs_of(
           system,
           {program(1, "/s/.generations/llm/0001/bin/python"), program(2, "/seen/.generations/llm/0001/bin/python"),
            program(3, "/of/a/container/.generations/llm/0001/bin/python"),
            program(4, "/other/.generations/llm/0001/bin/python"), program(5, "/s/.generations/else/0001/bin/python")},
           "llm", entry))
    pids.push_back(one.pid);
  CHECK(pids == std::vector{1, 2, 3});
}

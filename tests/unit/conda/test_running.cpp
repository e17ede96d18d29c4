#include "conda/running.hpp"

#include "support/catch.hpp"

#include <algorithm>

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

TEST_CASE("activation sets what conda sets", "[conda]") {
  RunningPlace place;
  place.prefix = "/s/.generations/llm/0001";
  place.variables = {{"A", "package"}, {"A", "state"}};
  SECTION("with nothing active") {
    const auto after = activated({"PATH=/usr/bin:/bin", "HOME=/h"}, place, "llm");
    CHECK(after == std::vector<std::string>{"PATH=/s/.generations/llm/0001/bin:/usr/bin:/bin", "HOME=/h",
                                            "CONDA_PREFIX=/s/.generations/llm/0001", "CONDA_SHLVL=1",
                                            "CONDA_DEFAULT_ENV=llm", "CONDA_PROMPT_MODIFIER=(llm) ", "A=state"});
  }
  SECTION("another environment leaves PATH, and is noted") {
    const auto after = activated({"PATH=/c/bin:/usr/bin", "CONDA_PREFIX=/c", "CONDA_SHLVL=1"}, place, "llm");
    CHECK(has(after, "PATH=/s/.generations/llm/0001/bin:/usr/bin"));
    CHECK(has(after, "CONDA_PREFIX_1=/c"));
    CHECK(has(after, "CONDA_SHLVL=2"));
  }
  SECTION("without PATH programs of the system are found") {
    CHECK(has(activated({}, place, "llm"), "PATH=/s/.generations/llm/0001/bin:/usr/local/bin:/usr/bin:/bin"));
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
  CHECK(state_variables(R"({"env_vars": {"A": "1", "B": "***unset***"}})")->size() == 1);
  CHECK(state_variables(R"({"version": 1})")->empty());
  for (const char* wrong :
       {"", "[]", R"({"env_vars": []})", R"({"env_vars": {"A": 1}})", R"({"env_vars": {"A=B": "1"}})",
        R"({"env_vars": {"A": "x\u0000y"}})", R"({"env_vars": {"": "1"}})"})
    CHECK_FALSE(state_variables(wrong));
  CHECK(package_variables(R"({"A": "1"})")->front().second == "1");
}

TEST_CASE("what scripts leave is the environment, but for the shell's own", "[conda]") {
  using namespace std::string_literals;
  const auto after =
      after_scripts({"PWD=/w", "SHLVL=1", "GONE=1", "KEPT=1"}, "KEPT=2\0NEW=a\nb\0SHLVL=2\0_=/usr/bin/env\0PWD=/\0"s);
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

#include "conda/installations.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;
using test::FakeHomes;

TEST_CASE("installations in homes and on the host", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.user("bob", 1001);
  machine.user("carol", 1002);
  machine.directory("/home/alice/miniconda3/conda-meta");
  machine.environment("/home/alice/miniconda3/envs/llm");
  machine.environment("/home/alice/miniconda3/envs/eval");
  machine.directory("/home/alice/miniconda3/envs/rest"); // no environment
  machine.directory("/home/bob/miniforge3/conda-meta");
  machine.link("/home/bob/miniforge3/envs", "/data/share/conda");
  machine.link("/home/carol/miniconda3", "/home/alice/miniconda3"); // a link is no installation of hers
  machine.directory("/home/carol/anaconda3");                       // an empty directory neither
  machine.directory("/opt/conda/conda-meta");
  const auto all = find_installations(machine, machine.machine().users);
  CHECK(all.problems.empty());
  REQUIRE(all.found.size() == 3);
  CHECK(all.found[0] == Installation{"alice", "/home/alice/miniconda3", "miniconda3", false, "", {"eval", "llm"}, {}});
  CHECK(all.found[1] == Installation{"bob", "/home/bob/miniforge3", "miniforge3", true, "/data/share/conda", {}, {}});
  CHECK(all.found[2] == Installation{"", "/opt/conda", "", false, "", {}, {}});
}

TEST_CASE("~/.conda counts only if it holds environments", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.user("bob", 1001);
  machine.directory("/home/alice/.conda/envs");
  machine.environment("/home/bob/.conda/envs/llm");
  const auto all = find_installations(machine, machine.machine().users);
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].user == "bob");
  CHECK(all.found[0].below == ".conda");
}

TEST_CASE("a home that does not answer is reported, the others are found", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.user("bob", 1001);
  machine.directory("/home/alice/miniconda3/conda-meta");
  machine.directory("/home/bob/miniconda3/conda-meta");
  machine.hang("/home/alice/miniconda3");
  const auto all = find_installations(machine, machine.machine().users);
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].user == "bob");
  REQUIRE(all.problems.size() == 1);
  CHECK(all.problems[0].code == "SF312");
  CHECK(all.problems[0].subject == "/home/alice");
}

TEST_CASE("of homes on a dead mount one is asked, and all are reported", "[conda]") {
  FakeHomes machine;
  machine.mount("/home");
  for (const auto* name : {"alice", "bob", "carol"})
    machine.user(name, 1000);
  machine.hang("/home/alice/miniconda3");
  const auto all = find_installations(machine, machine.machine().users);
  REQUIRE(all.problems.size() == 3);
  CHECK(all.problems[2].subject == "/home/carol");
  CHECK(all.problems[2].message.find("`/home/alice/miniconda3` on the same file system") != std::string::npos);
  for (const auto& question : machine.asked())
    CHECK_FALSE((question.ends_with(" as bob") || question.ends_with(" as carol")));
}

TEST_CASE("links below envs are read, never followed", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.directory("/home/alice/miniconda3/conda-meta");
  machine.environment("/home/alice/miniconda3/envs/own");
  machine.link("/home/alice/miniconda3/envs/llm", "/dead/llm");
  machine.hang("/home/alice/miniconda3/envs/llm/conda-meta");
  const auto all = find_installations(machine, machine.machine().users);
  CHECK(all.problems.empty());
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].environments == std::vector<std::string>{"own"});
  CHECK(all.found[0].links == std::vector<EnvironmentLink>{{"llm", "/dead/llm"}});
}

TEST_CASE("without root only the own home is read", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.user("bob", 1001);
  machine.self().uid = 1000;
  machine.directory("/home/alice/miniconda3/conda-meta");
  machine.directory("/home/bob/miniconda3/conda-meta");
  const auto all = find_installations(machine, machine.machine().users);
  REQUIRE(all.found.size() == 1);
  CHECK(all.found[0].user == "alice");
  for (const auto& question : machine.asked())
    CHECK(question.find("/home/bob") == std::string::npos);
}

TEST_CASE("the directories of a .condarc", "[conda]") {
  using Paths = std::vector<std::string>;
  CHECK(environment_directories("") == Paths{});
  CHECK(environment_directories("channels:\n  - /not/this\nenvs_dirs:  # ours\n  - /data/share/conda/\n"
                                "- \"/data/my-envs\"\n  - ~/envs\n  - relative\npkgs_dirs:\n  - /nor/this\n") ==
        Paths{"/data/share/conda", "/data/my-envs"});
  CHECK(environment_directories("envs_dirs: [/a, '/b']\nx: 1\n- /c\n") == Paths{"/a", "/b"});
}

TEST_CASE("the places of conda.homes are looked at too, each once", "[conda]") {
  FakeHomes machine;
  machine.user("alice", 1000);
  machine.user("carol", 1002);
  machine.environment("/home/alice/opt/forge/envs/mine");
  machine.directory("/home/alice/miniconda3/envs");
  machine.environment("/srv/carol/mamba/envs/hers");
  const std::vector<Homes> homes{{{"alice"}, "opt/forge"}, {{"carol"}, "/srv/carol/mamba"}};
  const auto all = find_installations(machine, machine.machine().users, homes);
  REQUIRE(all.found.size() == 3);
  CHECK(all.found[0].path == "/home/alice/miniconda3");
  CHECK(all.found[1].path == "/home/alice/opt/forge");
  CHECK(all.found[1].below == "opt/forge");
  CHECK(all.found[1].environments == std::vector<std::string>{"mine"});
  CHECK(all.found[2].path == "/srv/carol/mamba");
  CHECK(all.found[2].user.empty());
  CHECK(find_installations(machine, machine.machine().users, {{{"alice"}, "miniconda3"}}).found.size() == 1);
}

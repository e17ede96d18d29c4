#include "link_machine.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::conda;
using test::link_request;
using test::LinkMachine;
using test::plan_of;

namespace {

HomeState home_of(LinkMachine& machine, const LinkRequest& request) {
  auto state = probe(machine, request);
  REQUIRE(state);
  REQUIRE_FALSE(state->homes.empty());
  return state->homes.front();
}

} // namespace

TEST_CASE("homes are read as their users", "[conda]") {
  LinkMachine machine;
  machine.link("/home/alice/miniconda3/envs/llm", "/data/share/conda/llm");
  const auto home = home_of(machine, link_request());
  CHECK(home.problem == HomeProblem::none);
  REQUIRE(home.environments.size() == 2);
  CHECK(home.environments[0].entry.kind == sys::EntryKind::symlink);
  CHECK(home.environments[0].entry.link_target == "/data/share/conda/llm");
  CHECK(home.environments[1].entry.kind == sys::EntryKind::missing);
  for (const auto& question : machine.asked())
    for (const std::string name : {"alice", "bob"}) // where a home is, is asked by root
      CHECK((!question.starts_with("/home/" + name + "/") || question.ends_with(" as " + name)));
}

TEST_CASE("what may be wrong with a home", "[conda]") {
  LinkMachine machine;
  auto request = link_request();
  request.homes.front().users = {"alice"};
  const auto expect = [&](HomeProblem problem, const std::string& where) {
    const auto home = home_of(machine, request);
    CHECK(home.problem == problem);
    CHECK(home.where.path == where);
    CHECK(conda::plan(*probe(machine, request), request).empty());
  };
  SECTION("no such user") {
    request.homes.front().users = {"alicia"};
    expect(HomeProblem::unknown_user, "");
  }
  SECTION("no home") {
    machine.user("alice").home = "/nonexistent/alice";
    expect(HomeProblem::no_home, "/nonexistent/alice");
  }
  SECTION("no conda") {
    request.homes.front().conda = "apps/miniforge3";
    expect(HomeProblem::no_installation, "/home/alice/apps");
  }
  SECTION("conda is a link") {
    machine.link("/home/alice/mc", "/big/miniconda3");
    request.homes.front().conda = "mc";
    expect(HomeProblem::link_on_the_way, "/home/alice/mc");
  }
  SECTION("a link above conda") {
    machine.link("/home/alice/apps", "/etc");
    request.homes.front().conda = "apps/miniconda3";
    expect(HomeProblem::link_on_the_way, "/home/alice/apps");
  }
  SECTION("conda is a file") {
    machine.file("/home/alice/note");
    request.homes.front().conda = "note";
    expect(HomeProblem::not_directory, "/home/alice/note");
  }
  SECTION("not readable") {
    machine.deny["alice"].insert("/home/alice/miniconda3");
    expect(HomeProblem::unreadable, "/home/alice/miniconda3");
  }
  SECTION("envs not readable") {
    machine.deny["alice"].insert("/home/alice/miniconda3/envs");
    expect(HomeProblem::unreadable, "/home/alice/miniconda3/envs");
  }
  SECTION("no answer") {
    machine.hang("/home/alice/miniconda3");
    expect(HomeProblem::no_answer, "/home/alice/miniconda3");
  }
}

TEST_CASE("a home that is a link itself is the administrator's business", "[conda]") {
  LinkMachine machine;
  machine.user("dora", 1003);
  machine.directory("/export/dora/miniconda3/envs");
  machine.link("/home/dora", "../export/dora");
  auto request = link_request({"llm"});
  request.homes.front().users = {"dora"};
  const auto home = home_of(machine, request);
  CHECK(home.problem == HomeProblem::none);
  REQUIRE(home.actor);
  CHECK(home.actor->beneath == "/export/dora"); // actions follow no link, not even this one
  CHECK(plan_of(machine, request) ==
        std::vector<std::string>{"dora@/export/dora: link /export/dora/miniconda3/envs/llm -> /data/share/conda/llm"});
  SECTION("but not for ever") {
    machine.link("/home/dora", "/home/dora");
    CHECK(home_of(machine, request).problem == HomeProblem::no_home);
  }
}

TEST_CASE("no question goes through a link in a home", "[conda]") {
  LinkMachine machine;
  machine.link("/home/alice/miniconda3/envs", "/dead/envs");
  machine.hang("/home/alice/miniconda3/envs/llm");
  const auto home = home_of(machine, link_request());
  CHECK(home.problem == HomeProblem::none);
  CHECK(home.environments.empty());
}

TEST_CASE("many homes, one that hangs and one that is closed: few questions for each, and a group of its own",
          "[conda]") {
  constexpr std::size_t k_many = 40;
  LinkMachine machine;
  auto request = link_request({"llm"});
  request.homes.front().users.clear();
  for (std::size_t number = 0; number < k_many; ++number) {
    const auto name = "user" + std::to_string(number);
    machine.user(name, static_cast<uid_t>(2000 + number));
    machine.directory("/home/" + name + "/miniconda3/envs");
    request.homes.front().users.push_back(name);
  }
  machine.hang("/home/user7/miniconda3");
  machine.deny["user9"].insert("/home/user9/miniconda3");
  const auto state = probe(machine, request);
  REQUIRE(state);
  REQUIRE(state->homes.size() == k_many);
  for (std::size_t index = 0; index < k_many; ++index)
    CHECK(state->homes[index].name == request.homes.front().users[index]);
  CHECK(diagnose(*state, request).size() == 2);
  // The home (twice), conda, envs, envs/llm, its Python in the store; and the store.
  CHECK(machine.asked().size() == k_many * 6 + 3);
  // One link that was changed meanwhile keeps nobody else's from being undone.
  std::set<std::string> groups;
  for (const auto& step : conda::plan(*state, request).steps)
    groups.insert(step.group);
  CHECK(groups.size() == k_many - 2);
}

TEST_CASE("of homes on a dead mount one is asked", "[conda]") {
  LinkMachine machine;
  machine.mount("/home");
  machine.mount("/home/bob"); // his is another mount
  auto request = link_request({"llm"});
  for (const auto* name : {"dan", "eve"}) {
    machine.user(name, 3000);
    machine.directory(std::string("/home/") + name + "/miniconda3/envs");
    request.homes.front().users.emplace_back(name);
  }
  machine.hang("/home/alice");
  const auto state = probe(machine, request);
  REQUIRE(state);
  std::vector<HomeProblem> problems;
  for (const auto& home : state->homes)
    problems.push_back(home.problem);
  using enum HomeProblem;
  CHECK(problems == std::vector<HomeProblem>{no_answer, none, no_answer, no_answer});
  for (const auto& question : machine.asked()) // their homes; whether they may run what the store holds is another
    if (question.starts_with("/home/")) {
      CHECK_FALSE(question.ends_with(" as dan"));
      CHECK_FALSE(question.ends_with(" as eve"));
    }
  SECTION("that one cannot be read does not matter to the others") {
    machine.machine().entries.clear();
    machine.deny["alice"].insert("/home/alice");
    CHECK(plan_of(machine, request).size() == 3);
  }
}

TEST_CASE("no home is asked when the store cannot be used", "[conda]") {
  LinkMachine machine;
  machine.hang("/data/share/conda");
  REQUIRE(probe(machine, link_request()));
  for (const auto& question : machine.asked())
    CHECK_FALSE(question.starts_with("/home/"));
}

TEST_CASE("without root only the own home is handled", "[conda]") {
  LinkMachine machine;
  machine.self().uid = 1001;
  machine.self().user = "bob";
  const auto request = link_request({"llm"});
  const auto state = probe(machine, request);
  REQUIRE(state);
  CHECK(state->homes[0].problem == HomeProblem::needs_root);
  CHECK(summarize(state->homes[0], request) == HomeSummary::skipped);
  CHECK(summarize(state->homes[1], request) == HomeSummary::pending);
  const auto steps = conda::plan(*state, request).steps;
  REQUIRE(steps.size() == 1);
  CHECK(steps.front().group == "home bob");
  CHECK(diagnose(*state, request).size() == 1);
  for (const auto& question : machine.asked())
    CHECK(question.find(" as ") == std::string::npos); // as ourselves: nobody else can be become
}

TEST_CASE("an absolute installation is one for all", "[conda]") {
  LinkMachine machine;
  auto request = link_request({"llm"});
  SECTION("of the host: its owner acts, below it") {
    request.homes.front().conda = "/opt/miniconda3";
    machine.directory("/opt/miniconda3/envs");
    machine.entry("/opt/miniconda3").uid = 77;
    machine.entry("/opt/miniconda3").gid = 78;
    const auto home = home_of(machine, request);
    REQUIRE(probe(machine, request)->homes.size() == 1);
    CHECK(home.problem == HomeProblem::none);
    REQUIRE(home.actor);
    CHECK(home.actor->user.uid == 77);
    CHECK(home.actor->user.gid == 78);
    CHECK(home.actor->beneath == "/opt/miniconda3");
    CHECK(summarize(home, request) == HomeSummary::pending);
  }
  SECTION("an owner who is one of the users acts with all groups") {
    request.homes.front().conda = "/opt/miniconda3";
    machine.directory("/opt/miniconda3/envs");
    machine.entry("/opt/miniconda3").uid = 1001;
    machine.user("bob").groups = {1001, 50};
    CHECK(home_of(machine, request).actor->user == machine.user("bob"));
  }
  SECTION("a user whose home is / owns not everything") {
    machine.user("alice").home = "/";
    request.homes.front().conda = "/opt/miniconda3";
    machine.directory("/opt/miniconda3/envs");
    CHECK(home_of(machine, request).name == "/opt/miniconda3");
  }
  SECTION("of root") {
    request.homes.front().conda = "/opt/miniconda3";
    machine.directory("/opt/miniconda3/envs");
    CHECK(home_of(machine, request).actor->user.uid == 0);
  }
  SECTION("not there, or a link") {
    request.homes.front().conda = "/opt/miniconda3";
    CHECK(home_of(machine, request).problem == HomeProblem::no_installation);
    machine.link("/opt/miniconda3", "/opt/conda");
    CHECK(home_of(machine, request).problem == HomeProblem::link_on_the_way);
  }
  SECTION("in the home of one of the users: that user acts") {
    request.homes.front().conda = "/home/bob/miniconda3";
    REQUIRE(probe(machine, request)->homes.size() == 1);
    const auto home = home_of(machine, request);
    CHECK(home.name == "bob");
    CHECK(home.actor->user.name == "bob");
    CHECK(home.actor->beneath == "/home/bob");
  }
}

TEST_CASE("users have conda in different places, and each is done once", "[conda]") {
  LinkMachine machine;
  auto request = link_request({"llm"});
  machine.user("carol", 1002);
  machine.directory("/opt/carol/mambaforge/envs");
  machine.directory("/home/alice/opt/forge/envs");
  machine.entry("/opt/carol/mambaforge").uid = 1002;
  request.homes = {{{"alice"}, "opt/forge"},
                   {{"bob"}, "miniconda3"},
                   {{"carol"}, "/opt/carol/mambaforge"},
                   {{}, "/opt/carol/mambaforge"}};
  CHECK(plan_of(machine, request) ==
        std::vector<std::string>{
            "alice@/home/alice: link /home/alice/opt/forge/envs/llm -> /data/share/conda/llm",
            "bob@/home/bob: link /home/bob/miniconda3/envs/llm -> /data/share/conda/llm",
            "carol@/opt/carol/mambaforge: link /opt/carol/mambaforge/envs/llm -> /data/share/conda/llm"});
}

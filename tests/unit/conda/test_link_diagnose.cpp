#include "link_machine.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;
using test::k_envs;
using test::link_request;
using test::LinkMachine;
using test::only_alice;
using test::plan_of;
using test::unlink_request;
using test::verdicts_of;

namespace {

using Verdicts = std::vector<std::string>;

Diagnosis first(LinkMachine& machine, const LinkRequest& request) {
  const auto found = diagnose(*probe(machine, request), request);
  REQUIRE_FALSE(found.empty());
  return found.front();
}

} // namespace

TEST_CASE("nothing is said where nothing is wrong", "[conda]") {
  LinkMachine machine;
  CHECK(verdicts_of(machine, link_request()).empty());
  CHECK(verdicts_of(machine, unlink_request()).empty());
}

TEST_CASE("a store that is not there comes first, and alone", "[conda]") {
  LinkMachine machine;
  machine.hang("/data/share/conda");
  machine.environment(k_envs + "/llm");
  CHECK(verdicts_of(machine, link_request()) == Verdicts{"SF302 error /data/share/conda"});
}

TEST_CASE("what is in the way", "[conda]") {
  LinkMachine machine;
  auto request = only_alice(link_request());
  SECTION("a directory") {
    machine.environment(k_envs + "/llm");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF316 error " + k_envs + "/llm"});
    CHECK(first(machine, request).fix == "sharefs conda link llm --user alice --backup");
    request.backup = true;
    CHECK(verdicts_of(machine, request).empty());
  }
  SECTION("a foreign link") {
    machine.directory("/home/alice/own");
    machine.link(k_envs + "/llm", "/home/alice/own");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF316 error " + k_envs + "/llm"});
    CHECK(first(machine, request).message.find("`/home/alice/own`") != std::string::npos);
  }
  SECTION("an older link is none") {
    machine.link(k_envs + "/llm", "/gone");
    CHECK(verdicts_of(machine, request).empty());
  }
  SECTION("one link of the whole directory, as the manual recipe makes it") {
    machine.link(k_envs, "/data/share/conda");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF318 error " + k_envs});
    CHECK(first(machine, request).fix == "sharefs conda unlink --all --user alice");
    request.backup = true; // a link through which others may be working is not simply moved
    CHECK(verdicts_of(machine, request) == Verdicts{"SF318 error " + k_envs});
  }
  SECTION("envs leads elsewhere") {
    machine.link(k_envs, "/big/envs");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF315 error " + k_envs});
  }
  SECTION("the store itself") {
    request.store = k_envs;
    request.shares.clear();
    machine.environment(k_envs + "/llm");
    machine.environment(k_envs + "/eval");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF317 info " + k_envs + "/llm", "SF317 info " + k_envs + "/eval"});
    CHECK(summarize(probe(machine, request)->homes.front(), request) == HomeSummary::right);
  }
}

TEST_CASE("homes with a problem", "[conda]") {
  struct Row {
    void (*spoil)(LinkMachine&, LinkRequest&);
    std::string link, unlink; ///< what is said; empty: nothing
    HomeSummary linking, unlinking;
  };
  const std::vector<Row> rows{
      {[](LinkMachine&, LinkRequest& r) { r.homes.front().users = {"nobody"}; }, "SF310 error nobody",
       "SF310 error nobody", HomeSummary::blocked, HomeSummary::blocked},
      {[](LinkMachine& m, LinkRequest&) { m.self().uid = 1001; }, "SF311 info alice", "SF311 info alice",
       HomeSummary::skipped, HomeSummary::skipped},
      {[](LinkMachine& m, LinkRequest&) { m.hang("/home/alice"); }, "SF312 error /home/alice",
       "SF312 error /home/alice", HomeSummary::blocked, HomeSummary::blocked},
      {[](LinkMachine& m, LinkRequest&) { m.deny["alice"].insert("/home/alice"); }, "SF312 error /home/alice",
       "SF312 error /home/alice", HomeSummary::blocked, HomeSummary::blocked},
      {[](LinkMachine& m, LinkRequest&) { m.user("alice").home = "/no/home"; }, "SF313 error /no/home",
       "SF313 error /no/home", HomeSummary::blocked, HomeSummary::blocked},
      {[](LinkMachine&, LinkRequest& r) { r.homes.front().conda = "miniforge3"; }, "SF314 error /home/alice/miniforge3",
       "", HomeSummary::blocked, HomeSummary::right},
      {[](LinkMachine& m, LinkRequest&) { m.file("/home/alice/miniconda3"); }, "SF314 error /home/alice/miniconda3", "",
       HomeSummary::blocked, HomeSummary::right},
      {[](LinkMachine& m, LinkRequest&) { m.link("/home/alice/miniconda3", "/big"); },
       "SF315 error /home/alice/miniconda3", "", HomeSummary::blocked, HomeSummary::right},
  };
  for (const auto& row : rows) {
    for (auto request : {only_alice(link_request()), only_alice(unlink_request())}) {
      LinkMachine machine;
      row.spoil(machine, request);
      const bool links = request.verb == LinkRequest::Verb::link;
      const auto& said = links ? row.link : row.unlink;
      CAPTURE(row.link, links);
      CHECK(verdicts_of(machine, request) == (said.empty() ? Verdicts{} : Verdicts{said}));
      CHECK(summarize(probe(machine, request)->homes.front(), request) == (links ? row.linking : row.unlinking));
    }
  }
}

TEST_CASE("unlink tells what it leaves alone", "[conda]") {
  LinkMachine machine;
  auto request = only_alice(unlink_request());
  SECTION("in envs") {
    machine.environment(k_envs + "/llm");
    machine.link(k_envs + "/eval", "/data/share/conda/llm");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF319 info " + k_envs + "/llm", "SF319 info " + k_envs + "/eval"});
    CHECK(summarize(probe(machine, request)->homes.front(), request) == HomeSummary::right);
  }
  SECTION("a whole link that is not ours") {
    machine.link(k_envs, "/big/envs");
    CHECK(verdicts_of(machine, request) == Verdicts{"SF319 info " + k_envs});
  }
  SECTION("the whole link, for one environment") {
    machine.link(k_envs, "/data/share/conda");
    request.all = false;
    CHECK(verdicts_of(machine, request) == Verdicts{"SF318 error " + k_envs});
    CHECK(summarize(probe(machine, request)->homes.front(), request) == HomeSummary::blocked);
  }
}

TEST_CASE("homes left to root are said once", "[conda]") {
  LinkMachine machine;
  machine.self().uid = 4711;
  auto request = link_request();
  CHECK(verdicts_of(machine, request) == Verdicts{"SF311 info alice, bob"});
  for (const auto* name : {"u1", "u2", "u3", "u4", "u5"}) {
    machine.user(name, 3000);
    request.homes.front().users.emplace_back(name);
  }
  CHECK(verdicts_of(machine, request) == Verdicts{"SF311 info alice, bob, u1, u2, u3, 2 more"});
}

TEST_CASE("requirement 13: a link to what a user cannot run is not made, the others are", "[conda]") {
  LinkMachine machine;
  const auto request = link_request({"llm"});
  machine.file("/data/share/conda/llm/bin/python");
  auto& python = machine.entry("/data/share/conda/llm/bin/python");
  python.mode = 0755;
  SECTION("everybody may run it") {
    CHECK(verdicts_of(machine, request).empty());
  }
  SECTION("a directory above it lets one user not through") {
    machine.deny["bob"] = {"/data/share/conda/llm/bin"};
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF308 error /home/bob/miniconda3/envs/llm"});
    CHECK(plan_of(machine, request).size() == 1);
  }
  SECTION("only its owner may run it") {
    python.mode = 0700;
    python.uid = 1000;
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF308 error /home/bob/miniconda3/envs/llm"});
  }
  SECTION("a link that is there already is left, and told") {
    machine.deny["bob"] = {"/data/share/conda/llm/bin"};
    machine.link("/home/bob/miniconda3/envs/llm", "/data/share/conda/llm");
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF308 error /home/bob/miniconda3/envs/llm"});
    CHECK(plan_of(machine, request).size() == 1);
  }
}

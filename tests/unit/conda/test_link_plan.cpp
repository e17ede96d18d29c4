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

namespace {

using Steps = std::vector<std::string>;

const std::string k_alice = "alice@/home/alice: ";
const std::string k_bob = "bob@/home/bob: ";
const std::string k_backup = ".sharefs-backup-20260101-000000";

LinkRequest with_backup(LinkRequest request) {
  request.backup = true;
  return request;
}

} // namespace

TEST_CASE("one link per environment and home, as the home's user", "[conda]") {
  LinkMachine machine;
  const auto request = link_request();
  CHECK(plan_of(machine, request) == Steps{
                                         k_alice + "link " + k_envs + "/llm -> /data/share/conda/llm",
                                         k_alice + "link " + k_envs + "/eval -> /data/share/conda/eval",
                                         k_bob + "link /home/bob/miniconda3/envs/llm -> /data/share/conda/llm",
                                         k_bob + "link /home/bob/miniconda3/envs/eval -> /data/share/conda/eval",
                                     });
  const auto state = probe(machine, request);
  REQUIRE(state);
  const auto steps = conda::plan(*state, request).steps;
  CHECK(steps[0].group == steps[1].group);
  CHECK(steps[0].group != steps[2].group); // a home is a group: one that fails leaves the others alone
}

TEST_CASE("what is right is left alone", "[conda]") {
  LinkMachine machine;
  machine.link(k_envs + "/llm", "/data/share/conda/llm");
  machine.link(k_envs + "/eval", "/data/share//conda/eval/"); // the same place in other words
  CHECK(plan_of(machine, only_alice(link_request())).empty());
  SECTION("a relative link") {
    machine.link("/home/bob/miniconda3/envs/llm", "../../../../data/share/conda/llm");
    auto request = link_request({"llm"});
    CHECK(plan_of(machine, request).empty());
  }
}

TEST_CASE("a missing envs directory is made", "[conda]") {
  LinkMachine machine;
  machine.user("carol", 1002);
  machine.directory("/home/carol/miniconda3/conda-meta");
  auto request = link_request({"llm"});
  request.homes.front().users = {"carol"};
  CHECK(plan_of(machine, request) ==
        Steps{"carol@/home/carol: mkdir /home/carol/miniconda3/envs",
              "carol@/home/carol: link /home/carol/miniconda3/envs/llm -> /data/share/conda/llm"});
}

TEST_CASE("links that lead elsewhere", "[conda]") {
  struct Row {
    std::string leads_to;
    bool swapped;
  };
  const std::vector<Row> rows{
      {"/data/share/conda/.generations/llm/0001", true}, // below the store
      {"/data/share/conda", true},
      {"/old/share/llm", true},          // leads nowhere
      {"/home/alice/own", false},        // leads somewhere
      {"/data/share/conda2/llm", false}, // near the store, but not in it
      {"../../own", false},
      {"/unknown", false}, // may not be looked at
      {"/hanging", false}, // does not answer
  };
  for (const auto& row : rows) {
    CAPTURE(row.leads_to);
    LinkMachine machine;
    machine.directory("/home/alice/own");
    machine.directory("/data/share/conda2/llm");
    machine.deny["alice"].insert("/unknown");
    machine.hang("/hanging");
    machine.link(k_envs + "/llm", row.leads_to);
    const auto request = only_alice(link_request({"llm"}));
    const Steps swap{k_alice + "swap " + k_envs + "/llm " + row.leads_to + " -> /data/share/conda/llm"};
    CHECK(plan_of(machine, request) == (row.swapped ? swap : Steps{}));
    const Steps aside{k_alice + "rename " + k_envs + "/llm " + k_envs + "/llm" + k_backup,
                      k_alice + "link " + k_envs + "/llm -> /data/share/conda/llm"};
    CHECK(plan_of(machine, with_backup(request)) == (row.swapped ? swap : aside));
  }
}

TEST_CASE("a link into a share that is not mounted just now leads somewhere", "[conda]") {
  for (const std::string leads_to : {"/data/other/llm", "/data/other", "../../../../data/other/llm", "/shortcut/llm"}) {
    CAPTURE(leads_to);
    LinkMachine machine;
    machine.link(k_envs + "/llm", leads_to);
    machine.link("/shortcut", "/data/other"); // by another link
    const auto request = only_alice(link_request({"llm"}));
    CHECK(plan_of(machine, request).empty());
    const auto found = diagnose(*probe(machine, request), request);
    REQUIRE(found.size() == 1);
    CHECK(found.front().code == "SF316");
    CHECK(found.front().fix == "sharefs mount other");
    // With --backup nothing is lost; and once it is mounted, a link that leads nowhere there is swapped.
    CHECK(plan_of(machine, with_backup(request)).size() == 2);
    machine.mount("/data/other");
    CHECK(plan_of(machine, request) ==
          Steps{k_alice + "swap " + k_envs + "/llm " + leads_to + " -> /data/share/conda/llm"});
  }
}

TEST_CASE("a real directory is only moved aside on request", "[conda]") {
  LinkMachine machine;
  machine.environment(k_envs + "/llm");
  const auto request = only_alice(link_request());
  // The other environment is linked all the same.
  CHECK(plan_of(machine, request) == Steps{k_alice + "link " + k_envs + "/eval -> /data/share/conda/eval"});
  CHECK(plan_of(machine, with_backup(request)) ==
        Steps{k_alice + "rename " + k_envs + "/llm " + k_envs + "/llm" + k_backup,
              k_alice + "link " + k_envs + "/llm -> /data/share/conda/llm",
              k_alice + "link " + k_envs + "/eval -> /data/share/conda/eval"});
}

TEST_CASE("the store itself never becomes a link to itself", "[conda]") {
  LinkMachine machine;
  auto request = with_backup(only_alice(link_request({"llm"})));
  SECTION("by name") {
    request.store = k_envs;
    request.shares.clear();
    machine.environment(k_envs + "/llm");
    CHECK(plan_of(machine, request).empty());
  }
  SECTION("a store below envs: beside it there is room for links") {
    request.store = k_envs + "/store";
    request.shares.clear();
    machine.environment(k_envs + "/store/llm");
    CHECK(plan_of(machine, request) == Steps{k_alice + "link " + k_envs + "/llm -> " + k_envs + "/store/llm"});
  }
  SECTION("by a bind mount") {
    machine.environment(k_envs + "/llm");
    machine.entry(k_envs + "/llm").inode = machine.entry("/data/share/conda/llm").inode;
    CHECK(plan_of(machine, request).empty());
  }
}

TEST_CASE("no step without a store", "[conda]") {
  LinkMachine machine;
  machine.hang("/data/share/conda");
  CHECK(plan_of(machine, link_request()).empty());
}

TEST_CASE("unlink takes back exactly what link made", "[conda]") {
  LinkMachine machine;
  const auto request = only_alice(unlink_request());
  SECTION("nothing of ours") {
    machine.environment(k_envs + "/llm");
    machine.link(k_envs + "/eval", "/home/alice/own");
    CHECK(plan_of(machine, request).empty());
  }
  SECTION("links, with the text that they have; a dead server does not matter") {
    machine.hang("/data/share/conda");
    machine.link(k_envs + "/llm", "/data/share/conda/llm/");
    machine.link(k_envs + "/eval", "/data/share/conda/llm"); // of another environment: not exactly ours
    CHECK(plan_of(machine, request) == Steps{k_alice + "unlink " + k_envs + "/llm -> /data/share/conda/llm/"});
  }
  SECTION("the newest backup comes back") {
    machine.link(k_envs + "/llm", "/data/share/conda/llm");
    machine.directory(k_envs + "/llm.sharefs-backup-20250101-000000");
    machine.directory(k_envs + "/llm.sharefs-backup-20250601-000000");
    CHECK(plan_of(machine, request) ==
          Steps{k_alice + "unlink " + k_envs + "/llm -> /data/share/conda/llm",
                k_alice + "rename " + k_envs + "/llm.sharefs-backup-20250601-000000 " + k_envs + "/llm"});
  }
  SECTION("cut off between the two") {
    machine.directory(k_envs + "/llm.sharefs-backup-20250601-000000");
    CHECK(plan_of(machine, request) ==
          Steps{k_alice + "rename " + k_envs + "/llm.sharefs-backup-20250601-000000 " + k_envs + "/llm"});
  }
  SECTION("a backup is not put over what is there") {
    machine.directory(k_envs + "/llm.sharefs-backup-20250601-000000");
    machine.environment(k_envs + "/llm");
    CHECK(plan_of(machine, request).empty());
  }
  SECTION("a backup of `envs` does not hide the links in it") {
    machine.directory(k_envs + ".sharefs-backup-20250601-000000");
    machine.link(k_envs + "/llm", "/data/share/conda/llm");
    CHECK(plan_of(machine, request) == Steps{k_alice + "unlink " + k_envs + "/llm -> /data/share/conda/llm"});
  }
}

TEST_CASE("unlink of the whole directory, which the manual recipe has made a link", "[conda]") {
  LinkMachine machine;
  machine.link(k_envs, "/data/share/conda");
  machine.directory(k_envs + ".sharefs-backup-20250601-000000");
  auto request = only_alice(unlink_request());
  CHECK(plan_of(machine, request) == Steps{k_alice + "unlink " + k_envs + " -> /data/share/conda",
                                           k_alice + "rename " + k_envs + ".sharefs-backup-20250601-000000 " + k_envs});
  request.all = false;
  CHECK(plan_of(machine, request).empty());
}

TEST_CASE("requirement 13: of 200 homes one cannot be written to: 199 are done, 1 is reported", "[conda]") {
  LinkMachine machine;
  auto request = link_request({"llm"});
  request.homes.front().users.clear();
  for (int number = 0; number < 200; ++number) {
    const auto name = "u" + std::to_string(number);
    machine.user(name, static_cast<uid_t>(2000 + number));
    machine.directory("/home/" + name + "/miniconda3/envs");
    request.homes.front().users.push_back(name);
  }
  machine.deny["u77"] = {"/home/u77"};
  CHECK(plan_of(machine, request).size() == 199);
  CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF312 error /home/u77"});
}

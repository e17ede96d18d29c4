#include "mounts/diagnose.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::point_with;

namespace {

sys::NfsProbe server_that_says(const std::string& reason, bool listed = true) {
  auto probe =
      test::good_server(listed ? std::vector<std::string>{"/mnt/share"} : std::vector<std::string>{"/mnt/shar"});
  probe.access = {{"/mnt/share", false, reason}};
  return probe;
}

sys::NfsProbe only(int version) {
  auto probe = test::good_server();
  probe.v3 = version == 3;
  probe.v4 = version == 4;
  for (auto& stage : probe.stages)
    if (stage.stage == (version == 3 ? sys::ProbeStage::nfs4 : sys::ProbeStage::nfs3))
      stage.outcome = sys::StageOutcome::absent;
  return probe;
}

} // namespace

TEST_CASE("a good server raises nothing") {
  const auto server = test::good_server();
  CHECK(preflight(point_with("rw,vers=4.2"), &server).empty());
  CHECK(preflight(point_with("rw"), &server).empty());
  CHECK(preflight(point_with("rw"), nullptr).empty());
}

TEST_CASE("the failing stage is named") {
  const auto server = test::dead_server();
  const auto found = preflight(point_with("rw"), &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF201");
  CHECK(found[0].message == "server storage1 cannot be used, stage connect: no answer (it is off)");
  CHECK(found[0].hint == "see if it is on");
}

TEST_CASE("a cause that the stage has named already is not said again") {
  auto server = test::dead_server();
  for (auto& stage : server.stages)
    if (stage.outcome == sys::StageOutcome::failed)
      stage.detail = "it is off: no answer";
  CHECK(preflight(point_with("rw"), &server)[0].message ==
        "server storage1 cannot be used, stage connect: it is off: no answer");
}

TEST_CASE("a version that is not offered") {
  const auto v3 = only(3), v4 = only(4);
  CHECK(preflight(point_with("vers=4.2"), &v3)[0].code == "SF204");
  CHECK(preflight(point_with("vers=3"), &v4)[0].code == "SF204");
  CHECK(preflight(point_with("vers=3"), &v3).empty());
  CHECK(preflight(point_with("rw"), &v4).empty());
}

TEST_CASE("a version that lacks its portmapper or mountd is cured by that stage's hint") {
  auto server = test::good_server();
  server.stages[2] = {sys::ProbeStage::portmapper, sys::StageOutcome::failed, {}, "refused", "", "start rpcbind"};
  const auto found = preflight(point_with("vers=3"), &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF204");
  CHECK(found[0].hint == "start rpcbind");
}

TEST_CASE("a version that did not answer in time is not called missing") {
  auto late = only(3);
  late.v4_unknown = true;
  const auto found = preflight(point_with("vers=4.2"), &late);
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
}

TEST_CASE("a directory that the server does not have") {
  auto point = point_with("vers=3");
  point.server_name = "the_nas";
  const auto server = server_that_says("exported, but the server has no such directory");
  const auto found = preflight(point, &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].subject == "share");
  CHECK(found[0].message == "the_nas has no directory /mnt/share");
}

TEST_CASE("what mountd says") {
  struct Row {
    const char *options, *reason;
    bool listed;
    const char* code; ///< "" nothing
    Severity severity;
  };
  const auto row = GENERATE(values<Row>({
      {"vers=3", "access denied by server", true, "SF203", Severity::error},
      {"vers=4.2", "access denied by server", true, "SF203", Severity::error},
      {"vers=3", "access denied by server (a `secure` export answers only to root)", true, "SF203", Severity::warning},
      {"vers=3", "exported, but the server has no such directory", true, "SF203", Severity::error},
      {"vers=3", "no such export", false, "SF202", Severity::error},
      {"vers=4.2", "no such export", false, "SF202", Severity::warning}, // may lie below fsid=0
      {"rw", "no such export", false, "SF202", Severity::warning},
      {"vers=4.2", "only Kerberos (krb5)", true, "SF203", Severity::error},
      {"vers=4.2,sec=krb5p", "only Kerberos (krb5)", true, "", Severity::error},
      {"vers=4.2", "no answer in time", true, "", Severity::error},
      {"vers=3", "no answer in time", true, "", Severity::error},
  }));
  CAPTURE(row.options, row.reason);
  const auto server = server_that_says(row.reason, row.listed);
  const auto found = preflight(point_with(row.options), &server);
  if (*row.code == '\0') {
    CHECK(found.empty());
    return;
  }
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == row.code);
  CHECK(found[0].severity == row.severity);
  CHECK_FALSE(found[0].hint.empty());
}

TEST_CASE("an unlisted export gets the nearest one, and a server that exports nothing is told") {
  auto server = server_that_says("no such export", false);
  CHECK(preflight(point_with("vers=3"), &server)[0].hint.find("/mnt/shar") != std::string::npos);
  server.exports.clear();
  const auto found = preflight(point_with("vers=4.2"), &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].hint.find("sharefs export") != std::string::npos);
}

TEST_CASE("what mountd allows needs no line in the list") {
  auto server = test::good_server();
  server.exports = {{"/mnt/other", {}}};
  CHECK(preflight(point_with("vers=3"), &server).empty());
}

TEST_CASE("of thousands of exports and clients only the first are named") {
  auto server = server_that_says("no such export", false);
  server.exports.clear();
  for (int i = 0; i < 5000; ++i)
    server.exports.push_back({"/home/user" + std::to_string(i), {}});
  CHECK(preflight(point_with("vers=3"), &server)[0].hint ==
        "it exports /home/user0, /home/user1, /home/user2, /home/user3, /home/user4 and 4995 more");
  server = server_that_says("access denied by server");
  server.exports[0].clients.assign(300, "10.0.0.1");
  CHECK(preflight(point_with("vers=3"), &server)[0].message.ends_with(
      "(allowed: 10.0.0.1, 10.0.0.1, 10.0.0.1, 10.0.0.1, 10.0.0.1 and 295 more)"));
}

#include "fake_system.hpp"
#include "mounts/probe.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::FakeSystem;
using test::nfs_line;
using test::share;

namespace {

ProbeRequest wants(std::vector<MountRequest> requests) {
  ProbeRequest request;
  request.wanted = std::move(requests);
  request.targets = true;
  return request;
}

} // namespace

TEST_CASE("a mount that is there is probed with the options of its server's version") {
  FakeSystem system;
  system.table = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share"));
  system.servers["storage1"] = test::good_server();
  system.probes["/data/share"] = answered(sys::PathHealth::ok);
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  REQUIRE(seen->states.size() == 1);
  CHECK(seen->states[0].health == Health::healthy);
  CHECK(seen->states[0].right());
  CHECK(seen->states[0].point.options.size() == 5);
  CHECK(seen->server("storage1") != nullptr);
  CHECK(seen->targets.empty());
}

TEST_CASE("the directory of a missing mount is looked at") {
  FakeSystem system;
  system.table = test::table_of("");
  system.servers["storage1"] = test::dead_server();
  system.add_directory("/data", {"share"});
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  CHECK(seen->states[0].health == Health::missing);
  CHECK(seen->targets.at("/data/share").missing == std::vector<std::string>{"/data/share"});
  CHECK(system.probed.empty());
}

TEST_CASE("a target on a hung mount is never looked at") {
  FakeSystem system;
  system.table = test::table_of(nfs_line(50, 1, "/data", "storage1:/mnt/data"));
  system.probes["/data"] = answered(sys::PathHealth::hung);
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  CHECK(seen->targets.at("/data/share").problem == "it lies on /data, which is hung");
  CHECK(std::find(system.inspected.begin(), system.inspected.end(), "/data/share") == system.inspected.end());
}

TEST_CASE("an automounter is never woken") {
  FakeSystem system;
  system.table = test::table_of("50 1 0:3 / /data rw - autofs systemd-1 rw\n");
  auto request = wants({share("share", "/data"), share("inner", "/data/inner")});
  request.others = true;
  const auto seen = probe(system, request);
  REQUIRE(seen.has_value());
  CHECK(seen->states[0].health == Health::autofs_idle);
  CHECK(system.probed.empty());
  CHECK(std::find(system.inspected.begin(), system.inspected.end(), "/data/inner") == system.inspected.end());
}

TEST_CASE("other NFS mounts are found, hidden ones are not") {
  FakeSystem system;
  system.table =
      test::table_of(nfs_line(50, 1, "/z", "a:/z") + nfs_line(51, 1, "/b", "b:/b") + nfs_line(52, 51, "/b", "c:/c"));
  for (const auto* path : {"/z", "/b"})
    system.probes[path] = answered(sys::PathHealth::ok);
  auto request = wants({});
  request.others = true;
  request.servers = false;
  const auto seen = probe(system, request);
  REQUIRE(seen.has_value());
  REQUIRE(seen->states.size() == 2);
  CHECK(seen->states[0].point.target == "/b");
  CHECK(seen->states[0].point.server == "c");
  CHECK(seen->states[0].stacked == 1);
  CHECK_FALSE(seen->states[0].wanted);
  CHECK(seen->states[1].point.target == "/z");
  CHECK(seen->servers.empty());
}

TEST_CASE("an unknown profile is an error") {
  FakeSystem system;
  system.table = test::table_of("");
  auto request = share();
  request.profile = "fast";
  CHECK_FALSE(probe(system, wants({request})).has_value());
}

TEST_CASE("a second look renews the health") {
  FakeSystem system;
  system.table = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share"));
  system.probes["/data/share"] = answered(sys::PathHealth::stale);
  auto seen = probe(system, wants({share()}));
  REQUIRE(seen->states[0].health == Health::stale);
  system.probes["/data/share"] = answered(sys::PathHealth::ok);
  probe_again(system, seen->states, std::chrono::seconds(1));
  CHECK(seen->states[0].health == Health::healthy);
}

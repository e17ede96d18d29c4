#include "watch/performance.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::watch;

namespace {

/// A mount that nothing is wrong with.
Measured measured() {
  Measured one;
  one.statistics.source = "storage1:/srv/share";
  one.statistics.target = "/data/share";
  one.statistics.options = "rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp";
  one.statistics.age = std::chrono::hours(72);
  one.statistics.connections = 1;
  one.statistics.replies = 1'000'000;
  one.address = "10.0.0.1";
  for (const auto* name : {"READ", "WRITE", "GETATTR"})
    one.statistics.operations[name] = {1000, 1000, 0, 0, 0, 0, 500, 600, 0};
  return one;
}

Diagnoses of(const Measured& one, const Pings& pings = {}) {
  Reading reading;
  reading.mounts = {one};
  return diagnose(reading, pings);
}

std::vector<std::string> codes(const Diagnoses& found) {
  std::vector<std::string> all;
  for (const auto& one : found)
    all.push_back(one.code);
  return all;
}

using Codes = std::vector<std::string>;

} // namespace

TEST_CASE("a good mount has nothing to be said") {
  CHECK(of(measured()).empty());
  CHECK(diagnose({}, {}).empty());
}

TEST_CASE("the time of a slow read is said in its parts") {
  auto slow = measured();
  slow.statistics.operations["READ"] = {1000, 1000, 0, 0, 0, 1000, 130'000, 140'000, 0};
  const auto found = of(slow);
  REQUIRE(codes(found) == Codes{"SF701"});
  CHECK(found[0].message == "reads take 140 ms: 130 ms of them the network and the server, 10 ms on this host (mean of "
                            "1000 in the 3 days since it was mounted)");
  CHECK(found[0].hint.find("sharefs probe storage1") != std::string::npos);
  // Few say nothing.
  slow.statistics.operations["READ"] = {k_least_requests - 1, 1, 0, 0, 0, 0, 130'000, 140'000, 0};
  CHECK(of(slow).empty());
}

TEST_CASE("the network alone tells the server from the network") {
  auto slow = measured();
  slow.statistics.operations["GETATTR"] = {100, 100, 0, 0, 0, 0, 3'000, 3'100, 0};
  const auto server = of(slow, {{"10.0.0.1", std::chrono::microseconds(300)}});
  REQUIRE(codes(server) == Codes{"SF701"});
  CHECK(server[0].message.ends_with("; an empty request takes 300 us now, so the time passes in the server"));
  const auto network = of(slow, {{"10.0.0.1", std::chrono::milliseconds(28)}});
  REQUIRE(codes(network) == Codes{"SF701"});
  CHECK(network[0].message.ends_with("; an empty request takes 28 ms now"));
  CHECK(network[0].hint.find("network") != std::string::npos);
}

TEST_CASE("what waits on this host is its own") {
  auto full = measured();
  full.statistics.operations["READ"] = {1000, 1000, 0, 0, 0, 0, 10'000, 400'000, 0};
  const auto found = of(full);
  REQUIRE(codes(found) == Codes{"SF702"});
  CHECK(found[0].hint.find("nconnect") != std::string::npos);
  full.statistics.connections = 4;
  CHECK(of(full)[0].hint.find("nconnect") == std::string::npos);
  // What is written waits in the kernel by design.
  auto writes = measured();
  writes.statistics.operations["WRITE"] = {1000, 1000, 0, 0, 0, 0, 10'000, 400'000, 0};
  CHECK(of(writes).empty());
}

TEST_CASE("lost requests and replies to nobody") {
  auto lossy = measured();
  lossy.statistics.operations["READ"] = {1000, 1011, 0, 0, 0, 0, 1, 1, 0};
  CHECK(codes(of(lossy)) == Codes{"SF703"});
  lossy.statistics.operations["READ"] = {10, 90, 12, 0, 0, 0, 1, 1, 0}; // a request that is sent again and again
  REQUIRE(codes(of(lossy)) == Codes{"SF703"});
  CHECK(of(lossy)[0].message ==
        "2010 requests, sent again 80 times, without a reply for as long as `timeo` and `retrans` "
        "allow 12 times, in the 3 days since it was mounted");
  lossy.statistics.operations["READ"] = {1000, 1009, 0, 0, 0, 0, 1, 1, 0}; // a server's restart
  CHECK(of(lossy).empty());
  lossy.statistics.operations["READ"] = {1000, 1000, 12, 0, 0, 0, 1, 1, 0};
  CHECK(codes(of(lossy)) == Codes{"SF703"});
  lossy.statistics.operations["READ"] = {1'000'000, 1'000'012, 12, 0, 0, 0, 1, 1, 0}; // of very many
  CHECK(of(lossy).empty());
  auto mixed = measured();
  mixed.statistics.bad_xids = 1001;
  CHECK(codes(of(mixed)) == Codes{"SF704"});
}

TEST_CASE("options that make it slow, or unsafe") {
  auto small = measured();
  small.statistics.options = "rw,rsize=8192,wsize=1048576";
  CHECK(codes(of(small)) == Codes{"SF705"});
  CHECK(of(small)[0].message.starts_with("rsize=8192: "));
  for (const std::string option : {"soft", "noac", "sync"}) {
    auto odd = measured();
    odd.statistics.options += "," + option;
    const auto found = of(odd);
    REQUIRE(codes(found) == Codes{"SF707"});
    CHECK(found[0].severity == Severity::info);
    CHECK(found[0].message.find("`" + option + "`") != std::string::npos);
  }
  auto softerr = measured();
  softerr.statistics.options += ",softerr,async";
  CHECK(of(softerr).empty());
}

TEST_CASE("one export on two superblocks; a server with one thread") {
  Reading reading;
  reading.mounts = {measured(), measured()};
  reading.mounts[1].statistics.target = "/old";
  reading.mounts[1].statistics.options = "ro,vers=3,rsize=1048576,wsize=1048576,hard,proto=tcp";
  reading.nfsd_threads = 1;
  const auto found = diagnose(reading, {});
  REQUIRE(codes(found) == Codes{"SF706", "SF708"});
  CHECK(found[0].message == "storage1:/srv/share is mounted on /data/share too, with rw,vers=4.2 instead of ro,vers=3: "
                            "two caches of the same files");
  reading.nfsd_threads = 8;
  CHECK(codes(diagnose(reading, {})) == Codes{"SF706"});
}

TEST_CASE("means do not overflow, whatever the kernel counts") {
  Operation most;
  most.count = 1;
  most.rtt_ms = most.execute_ms = UINT64_MAX;
  CHECK(mean_of(most)->wait_us == 0);
  most.rtt_ms = UINT64_MAX;
  most.execute_ms = 0;
  CHECK(mean_of(most)->wait_us == 0);
  CHECK_FALSE(mean_of(Operation{}));
}

TEST_CASE("the reading of this host: one of each superblock, and only what is seen") {
  test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  const std::string line = " with fstype nfs4 statvers=1.1\n\topts:\trw\n\tage:\t5\n";
  std::filesystem::create_directories(root / "proc/self");
  root.write("proc/self/mountstats", "device s:/gone mounted on /m" + line + "device s:/a mounted on /m" + line +
                                         "device s:/a mounted on /n" + line);
  auto entries = system.machine.mounts.entries();
  for (const auto* target : {"/m", "/n"}) {
    sys::MountEntry entry;
    entry.id = static_cast<int>(50 + entries.size());
    entry.parent = entries.front().id;
    entry.major = 0;
    entry.minor = 77;
    entry.root = "/";
    entry.target = target;
    entry.fs_type = "nfs4";
    entry.source = "s:/a";
    entry.super_options = "rw,addr=10.0.0.9";
    entries.push_back(entry);
  }
  system.machine.mounts = sys::MountTable(entries);
  const auto reading = probe(system);
  REQUIRE(reading);
  REQUIRE(reading->mounts.size() == 1);
  CHECK(reading->mounts[0].statistics.target == "/m");
  CHECK(reading->mounts[0].statistics.source == "s:/a");
  CHECK(reading->mounts[0].elsewhere == std::vector<std::string>{"/n"});
  CHECK(reading->mounts[0].address == "10.0.0.9");
  CHECK_FALSE(reading->nfsd_threads);

  root.write("proc/self/mountstats", "device s:/a mounted\n");
  CHECK_FALSE(probe(system));
  std::filesystem::remove(root / "proc/self/mountstats");
  CHECK(probe(system)->mounts.empty());
}

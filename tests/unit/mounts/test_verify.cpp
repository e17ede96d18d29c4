#include "fake_system.hpp"
#include "mounts/verify.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::has_code;

namespace {

const MountPoint k_verified{"share", "storage1", "/mnt/share", "/data/share", {"rw"}, ""};

sys::PathFact directory(std::uint32_t uid, std::uint32_t gid, std::uint32_t mode) {
  sys::PathFact fact;
  fact.path = "/data/share";
  fact.kind = sys::PathKind::directory;
  fact.uid = uid;
  fact.gid = gid;
  fact.mode = mode;
  return fact;
}

} // namespace

TEST_CASE("who may write where root may not") {
  struct Row {
    std::uint32_t uid, gid, mode;
    const char* name; ///< "" nobody but root
  };
  const auto row = GENERATE(values<Row>({{1000, 100, 0755, "uid 1000"},
                                         {0, 2000, 02775, "gid 2000"},
                                         {0, 0, 01777, "nobody"},
                                         {0, 0, 0755, ""},
                                         {1000, 100, 0555, ""},
                                         {0, 2000, 0755, ""}}));
  const auto user = likely_writer(directory(row.uid, row.gid, row.mode));
  CHECK(user.value_or(sys::User{}).name == row.name);
  if (user)
    CHECK(user->uid != 0);
}

TEST_CASE("a mount that can be written") {
  test::FakeSystem system;
  system.probe_one = [](const sys::PathProbeRequest& request) {
    CHECK(request.write_test);
    return answered(sys::PathHealth::ok, std::chrono::microseconds(3200));
  };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  REQUIRE(all.results.size() == 1);
  CHECK(all.results[0].ok);
  CHECK(all.results[0].written);
  CHECK(all.diagnoses.empty());
  CHECK(describe(all.results[0]) == "write, fsync, read back and delete worked in 3.2 ms");
}

TEST_CASE("a read-only mount is only read") {
  test::FakeSystem system;
  auto point = k_verified;
  point.options = {"ro", "hard"};
  system.probe_one = [](const sys::PathProbeRequest& request) {
    CHECK_FALSE(request.write_test);
    return answered(sys::PathHealth::ok);
  };
  system.facts["/data/share"] = directory(0, 0, 0755);
  CHECK(verify(system, {point}, std::chrono::seconds(1)).results[0].ok);
  system.facts["/data/share"].error_number = EACCES;
  const auto all = verify(system, {point}, std::chrono::seconds(1));
  CHECK_FALSE(all.results[0].ok);
  CHECK(has_code(all.diagnoses, "SF228"));
}

TEST_CASE("a squashed root tries as the group of the directory") {
  test::FakeSystem system;
  system.facts["/data/share"] = directory(0, 2000, 02775);
  system.probe_one = [](const sys::PathProbeRequest& request) {
    return answered(request.as && request.as->gid == 2000 ? sys::PathHealth::ok : sys::PathHealth::denied);
  };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK(all.results[0].written);
  CHECK(all.results[0].as == "gid 2000");
  CHECK(all.diagnoses.empty());
}

TEST_CASE("a directory of root that is squashed is a warning, not a failure") {
  test::FakeSystem system;
  system.facts["/data/share"] = directory(0, 0, 0755);
  system.probe_one = [](const sys::PathProbeRequest&) { return answered(sys::PathHealth::denied); };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK(all.results[0].ok);
  CHECK_FALSE(all.results[0].written);
  REQUIRE(has_code(all.diagnoses, "SF227"));
  CHECK(all.diagnoses[0].message.find("root_squash") != std::string::npos);
}

TEST_CASE("what fails is a failure") {
  const auto health = GENERATE(sys::PathHealth::hung, sys::PathHealth::stale, sys::PathHealth::full,
                               sys::PathHealth::read_only, sys::PathHealth::failed);
  test::FakeSystem system;
  system.probe_one = [&](const sys::PathProbeRequest&) { return answered(health); };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK_FALSE(all.results[0].ok);
  CHECK(has_code(all.diagnoses, "SF228"));
}

#include "mounts/verify.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::has_code;

namespace {

const MountPoint k_verified = test::point_with("rw");

sys::Entry directory(std::uint32_t uid, std::uint32_t gid, std::uint32_t mode) {
  auto entry = answered();
  entry.uid = uid;
  entry.gid = gid;
  entry.mode = mode;
  return entry;
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
  test::ScriptedSystem system;
  system.machine.on_entry = [](const sys::EntryQuery& query, const std::optional<sys::User>&) {
    CHECK(query.write_test);
    return answered();
  };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  REQUIRE(all.results.size() == 1);
  CHECK(all.results[0].ok);
  CHECK(all.results[0].written);
  CHECK(all.diagnoses.empty());
  CHECK(describe(all.results[0]) == "write, fsync, read back and delete worked");
}

TEST_CASE("whose a file became, and what the server's clock says") {
  const auto said = [](std::uint32_t owner, int ahead_ms, uid_t self = 0) {
    test::ScriptedSystem system;
    system.machine.identity.uid = self;
    system.machine.on_entry = [&](const sys::EntryQuery&, const std::optional<sys::User>&) {
      auto answer = answered();
      answer.made = sys::TestFile{owner, std::chrono::milliseconds(ahead_ms)};
      return answer;
    };
    std::string text;
    for (const auto& one : verify(system, {k_verified}, std::chrono::seconds(1)).diagnoses)
      text += fmt::format("{} {} {}; ", one.code, static_cast<int>(one.severity), one.message);
    return text;
  };
  CHECK(said(0, 1999).empty());
  CHECK(said(0, -37'000).find("the clock of its server is 37 s behind this host's") != std::string::npos);
  CHECK(said(0, 2000).find("is 2 s ahead of this host's") != std::string::npos);
  CHECK(said(65534, 0).find("uid 65534: the server squashes root") != std::string::npos);
  CHECK(said(65534, 0, 1000).find("uid 1000 wrote there belongs to uid 65534 (nobody)") != std::string::npos);
}

TEST_CASE("a read-only mount is only read") {
  test::ScriptedSystem system;
  const auto point = test::point_with("ro,hard");
  auto answer = directory(0, 0, 0755);
  system.machine.on_entry = [&](const sys::EntryQuery& query, const std::optional<sys::User>&) {
    CHECK_FALSE(query.write_test);
    CHECK(query.list);
    return answer;
  };
  CHECK(verify(system, {point}, std::chrono::seconds(1)).results[0].ok);
  answer.error_number = ESTALE;
  const auto all = verify(system, {point}, std::chrono::seconds(1));
  CHECK_FALSE(all.results[0].ok);
  CHECK(has_code(all.diagnoses, "SF228"));
}

TEST_CASE("a squashed root tries as the group of the directory") {
  test::ScriptedSystem system;
  system.machine.on_entry = [](const sys::EntryQuery&, const std::optional<sys::User>& as) {
    auto answer = directory(0, 2000, 02775);
    answer.error_number = as && as->gid == 2000 ? 0 : EACCES;
    return answer;
  };
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK(all.results[0].written);
  REQUIRE(all.results[0].as);
  CHECK(all.results[0].as->name == "gid 2000");
  CHECK(all.diagnoses.empty());
}

TEST_CASE("a directory of root that is squashed is a warning, not a failure") {
  test::ScriptedSystem system;
  auto answer = directory(0, 0, 0755);
  answer.error_number = EACCES;
  system.machine.entries["/data/share"] = answer;
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK(all.results[0].ok);
  CHECK_FALSE(all.results[0].written);
  REQUIRE(has_code(all.diagnoses, "SF227"));
  CHECK(all.diagnoses[0].message.find("root_squash") != std::string::npos);
}

TEST_CASE("what fails is a failure") {
  struct Row {
    int error_number;
    const char* code;
  };
  const auto row = GENERATE(
      values<Row>({{ETIMEDOUT, "SF228"}, {ESTALE, "SF228"}, {ENOSPC, "SF230"}, {EROFS, "SF216"}, {EIO, "SF228"}}));
  test::ScriptedSystem system;
  system.machine.entries["/data/share"] = answered(row.error_number);
  const auto all = verify(system, {k_verified}, std::chrono::seconds(1));
  CHECK_FALSE(all.results[0].ok);
  CHECK(has_code(all.diagnoses, row.code));
}

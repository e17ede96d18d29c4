#include "mounts/verify.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

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
  CHECK(all.results[0].as == "gid 2000");
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

#include "base/path.hpp"
#include "cachefix/local_root.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/scripted_system.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

/// Three disks below a root of our own, one of them shared; how much is free is the script's.
struct Disks {
  test::TemporaryDirectory directory;
  std::string root = directory.path();
  std::string script;

  void disk(const std::string& path, const std::string& free_bytes, const std::string& free_files = "1000000") {
    fs::create_directories(root + path);
    script += fmt::format(R"({}"{}{}": {{"health": "ok", "free_bytes": {}, "files": 2000000, "free_files": {}}})",
                          script.empty() ? "" : ",", root, path, free_bytes, free_files);
  }
  [[nodiscard]] LocalRoot find(const std::vector<std::string>& directories) const {
    auto system = test::ScriptedSystem::from_json(
        fmt::format(R"({{"identity": {{"user": "alice", "uid": {}}}, "probe_path": {{{}}}, "mountinfo":
          "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 0:50 / /nfs rw - nfs4 s:/x rw\n"}})",
                    ::geteuid(), script),
        root);
    if (!system)
      FAIL(system.error().message);
    const auto mounts = (*system)->mounts();
    REQUIRE(mounts);
    sys::Resolver resolver = sys::make_resolver(**system, *mounts, std::chrono::seconds(1));
    return find_local_root(**system, resolver, {directories, 1ULL << 30U}, (*system)->identity());
  }
};

} // namespace

TEST_CASE("requirement 9: of the directories that are not shared the one with the most free space is taken") {
  Disks disks;
  disks.disk("/a", "2000000000");
  disks.disk("/b", "9000000000");
  disks.disk("/nfs", "99000000000");
  disks.disk("/c", "9000000000");
  CHECK(disks.find({"/a", "/b", "/nfs", "/c"}) == LocalRoot{"/b/alice", false, ""});
  CHECK(disks.find({"/a"}).directory == "/a/alice");
}

TEST_CASE("requirement 9: too few bytes or inodes are no place for a cache") {
  Disks disks;
  disks.disk("/small", "1000000");
  disks.disk("/few", "9000000000", "12");
  disks.disk("/var/tmp", "9000000000");
  const LocalRoot root = disks.find({"/small", "/few"});
  CHECK(root.directory == "/var/tmp/sharefs-alice");
  CHECK(root.fallback);
  CHECK(root.problem.find("/small/alice has 977 KiB free") != std::string::npos);
  CHECK(root.problem.find("/few/alice has only 12 free inodes") != std::string::npos);
}

TEST_CASE("requirement 9: where nothing has room there is no directory, and the reasons are told") {
  Disks disks;
  disks.disk("/small", "1000000");
  disks.disk("/var/tmp", "1000000");
  const LocalRoot root = disks.find({"/small"});
  CHECK(root.directory.empty());
  CHECK(root.problem.find("caches.min_free is 1.0 GiB") != std::string::npos);
}

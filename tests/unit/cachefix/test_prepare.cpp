#include "cachefix/guard.hpp"
#include "cachefix/run_plan.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"
#include "sys/mounts/mount_table.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

constexpr uid_t k_other_user = 1001;

struct Job {
  test::TemporaryDirectory directory;
  test::ScriptedSystem system{directory.path()};
  RunPlan decided;

  Job() {
    system.machine.identity.uid = ::geteuid();
    system.machine.identity.user = "alice";
    fs::create_directories(real("/var"));
  }
  [[nodiscard]] std::string real(const std::string& path) const { return directory.path() + path; }
  [[nodiscard]] std::string text(const std::string& path) const {
    std::stringstream out;
    out << std::ifstream(real(path)).rdbuf();
    return out.str();
  }
  [[nodiscard]] unsigned mode(const std::string& path) const {
    struct stat status{};
    return ::lstat(real(path).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
  }
  Result<void> prepare() { return cachefix::prepare(system, decided); }
};

} // namespace

TEST_CASE("the directory for all users is open to them whatever the umask, the own one is not") {
  Job job;
  job.decided.directories = {{"/var/cache/alice/0123456789ab", "/share/c"}};
  const mode_t before = ::umask(077);
  const auto prepared = job.prepare();
  ::umask(before);
  REQUIRE(prepared);
  CHECK(job.mode("/var/cache") == (::geteuid() == 0 ? 01777U : 0700U));
  CHECK(job.mode("/var/cache/alice") == 0700);
  CHECK(job.mode("/var/cache/alice/0123456789ab") == 0700);
  CHECK(job.text("/var/cache/alice/.origin-0123456789ab") == "/share/c\n");
}

TEST_CASE("attack: a user's directory that somebody else made is not used") {
  Job job;
  job.decided.directories = {{"/var/cache/alice/0123456789ab", "/share/c"}};
  fs::create_directories(job.real("/var/cache/alice"));
  REQUIRE(::chmod(job.real("/var/cache").c_str(), 01777) == 0);
  REQUIRE(::chown(job.real("/var/cache/alice").c_str(), k_other_user, k_other_user) == 0);
  CHECK_FALSE(job.prepare());
}

TEST_CASE("the guard is found beside the program, on this host's own disk only") {
  CHECK(guard_directories("/usr/bin/sharefs") ==
        std::vector<std::string>{"/usr/share/sharefs/guard", "/usr/bin/share/sharefs/guard"});
  Job job;
  CHECK_FALSE(find_guard(job.system, "/usr/bin/sharefs"));
  fs::create_directories(job.real("/usr/share/sharefs/guard"));
  CHECK(find_guard(job.system, "/usr/bin/sharefs") == "/usr/share/sharefs/guard");
  fs::create_directories(job.real("/build/share/sharefs/guard"));
  CHECK(find_guard(job.system, "/build/sharefs") == "/build/share/sharefs/guard");
  job.system.machine.mounts = *sys::MountTable::parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                                      "2 1 0:9 / /usr rw - nfs 10.0.0.1:/usr rw,vers=3\n");
  const auto shared = find_guard(job.system, "/usr/bin/sharefs");
  REQUIRE_FALSE(shared);
  CHECK(shared.error().message == "/usr/share/sharefs/guard lies on shared storage (nfs)");
}

TEST_CASE("where a shared cache is built: on the node's own disk, else on the share under a name of its own") {
  Job job;
  job.system.machine.mounts = *sys::MountTable::parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                                      "2 1 0:9 / /share rw - nfs 10.0.0.1:/share rw,vers=3,nolock\n"
                                                      "3 1 0:8 / /four rw - nfs4 10.0.0.1:/four rw,vers=4.2\n");
  fs::create_directories(job.real("/share"));
  fs::create_directories(job.real("/four"));
  fs::create_directories(job.real("/var/cache/sharefs"));
  REQUIRE(::chmod(job.real("/var/cache/sharefs").c_str(), 01777) == 0);
  const LocalChoice choice{{"/var/cache/sharefs"}, 0, {}};
  const CachePlace local = place_of(job.system, "/share/c", choice);
  CHECK(local.place == "local");
  CHECK(local.directory == "/var/cache/sharefs/alice/" + cache_key("/share/c"));
  CHECK(local.shared);
  CHECK_FALSE(local.excludes);
  CHECK(job.mode(local.directory) == 0700);
  CHECK(place_of(job.system, "/four/c", choice).excludes);
  CHECK(place_of(job.system, "/home/c", choice).place == "leave");
  const CachePlace unique = place_of(job.system, "/share/c", {{"/var/cache/sharefs"}, 1ULL << 62U, {}});
  CHECK(unique.place == "unique");
  CHECK(unique.directory.empty());
  CHECK_FALSE(unique.reason.empty());
}

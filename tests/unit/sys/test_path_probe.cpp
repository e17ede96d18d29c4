#include "sys/fs/path_probe.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/process/process.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

PathProbe probe(const std::string& path, bool write_test = false, std::optional<User> as = {}) {
  return probe_paths({{path, 2000ms, write_test, as}}).at(0);
}

/// In a child with an own mount namespace: a FUSE file system that nobody serves hangs at `path` like a dead server.
/// Gives the text of `work`; "no FUSE" where the kernel or the privilege for it is missing.
Result<std::string> with_hung_mount(const std::string& path, const std::function<std::string()>& work) {
  return in_child(std::nullopt, 8s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("no FUSE");
    const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
    if (device < 0 || ::mount("hung", path.c_str(), "fuse", MS_NODEV, options.c_str()) != 0)
      return std::string("no FUSE");
    return work();
  });
}

} // namespace

TEST_CASE("healthy and missing paths") {
  const test::TemporaryDirectory directory;
  directory.write("file", "");
  const PathProbe healthy = probe(directory.path());
  CHECK(healthy.health == PathHealth::ok);
  CHECK(healthy.size_bytes > 0);
  CHECK(healthy.free_bytes <= healthy.size_bytes);
  CHECK(healthy.latency.count() >= 0);
  CHECK(healthy.detail.empty());
  const PathProbe missing = probe(directory / "none");
  CHECK(missing.health == PathHealth::missing);
  CHECK(missing.error_number == ENOENT);
  CHECK(missing.detail == "statfs: No such file or directory");
  CHECK(probe(directory / "file/below").health == PathHealth::missing);
}

TEST_CASE("the write test leaves nothing behind") {
  const test::TemporaryDirectory directory;
  CHECK(probe(directory.path(), true).health == PathHealth::ok);
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("the write test names the step that failed") {
  const test::TemporaryDirectory directory;
  CHECK(probe("/proc", true).health != PathHealth::ok);
  if (::geteuid() != 0)
    return;
  fs::permissions(directory.path(), fs::perms::owner_all);
  const PathProbe denied = probe(directory.path(), true, test::nobody());
  CHECK(denied.health == PathHealth::denied);
  CHECK(denied.error_number == EACCES);
  fs::permissions(directory.path(), fs::perms(0755));
  const PathProbe unwritable = probe(directory.path(), true, test::nobody());
  CHECK(unwritable.health == PathHealth::denied);
  CHECK(unwritable.detail == "create: Permission denied");
  CHECK(unwritable.size_bytes > 0);
}

TEST_CASE("read-only and full file systems") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  const auto answer = in_child(std::nullopt, 8s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory.path().c_str(), "tmpfs", 0, "size=4k") != 0)
      return std::string("no mounts");
    std::string text;
    const int fill = ::open((directory / "fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (::write(fill, "x", 1) == 1)
      ;
    text += to_string(probe(directory.path(), true).health);
    ::mount("none", directory.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr);
    ::close(fill);
    ::mount("none", directory.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr);
    return text + " " + to_string(probe(directory.path(), true).health);
  });
  REQUIRE(answer);
  if (*answer == "no mounts")
    WARN("no right to mount here");
  else
    CHECK(*answer == "full read_only");
}

TEST_CASE("results come in the order of the requests, also of more than run at a time") {
  const test::TemporaryDirectory directory;
  std::vector<PathProbeRequest> requests;
  for (int i = 0; i < 230; ++i) {
    PathProbeRequest request;
    request.path = i % 3 == 0 ? directory.path() : directory / "none";
    request.deadline = 10s;
    requests.push_back(request);
  }
  const auto results = probe_paths(requests);
  REQUIRE(results.size() == requests.size());
  bool right = true;
  for (std::size_t i = 0; i < results.size(); ++i)
    right = right && results[i].health == (i % 3 == 0 ? PathHealth::ok : PathHealth::missing);
  CHECK(right);
  CHECK(probe_paths({}).empty());
}

TEST_CASE("a user that cannot be become is reported") {
  if (::geteuid() == 0)
    return;
  const PathProbe result = probe("/", false, test::nobody());
  CHECK(result.health == PathHealth::denied);
  CHECK(result.detail.starts_with("cannot act as another user"));
}

TEST_CASE("hung mounts cost one deadline together, and hold nobody else up") {
  const test::TemporaryDirectory directory;
  const auto answer = with_hung_mount(directory.path(), [&] {
    std::vector<PathProbeRequest> requests(20, {directory.path(), 200ms, false, {}});
    requests[7].path = "/";
    const auto begin = std::chrono::steady_clock::now();
    const auto results = probe_paths(requests);
    const auto took = std::chrono::steady_clock::now() - begin;
    std::string text;
    for (const PathProbe& result : results)
      text += result.health == PathHealth::hung ? "h" : result.health == PathHealth::ok ? "o" : "?";
    return text + (took < requests.size() * requests[0].deadline ? " together " : " in turn ") + results[0].detail;
  });
  REQUIRE(answer);
  if (*answer == "no FUSE")
    WARN("no right to mount FUSE here");
  else
    CHECK(*answer == "hhhhhhhohhhhhhhhhhhh together no answer to statfs within 200.0 ms");
}

TEST_CASE("inspecting names the path that it hung on") {
  const test::TemporaryDirectory directory;
  const auto answer = with_hung_mount(directory.path(), [&] {
    InspectRequest request;
    request.deadline = 200ms;
    for (const std::string& path : {std::string("/"), directory / "x/y", std::string("/etc")})
      request.queries.push_back({path, false, false, 0});
    const auto facts = inspect_paths(request);
    return facts ? "no error" : std::string(to_string(facts.error().code)) + " " + facts.error().message;
  });
  REQUIRE(answer);
  if (*answer == "no FUSE")
    WARN("no right to mount FUSE here");
  else
    CHECK(answer->starts_with("timeout " + directory / "x/y: no answer within"));
}

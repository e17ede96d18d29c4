#include "sys/mounts/mounting.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

/// Runs `work` as root of an own mount namespace; its text, or "not here" without the right to do so.
std::string in_namespace(const std::function<std::string()>& work) {
  const auto answer = in_child(std::nullopt, 10s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("not here");
    return work();
  });
  return answer ? *answer : answer.error().message;
}

std::string told(const Result<void>& result) {
  return result ? "ok" : std::string(to_string(result.error().code)) + " " + result.error().message;
}

} // namespace

TEST_CASE("the mount table of this process") {
  const auto table = read_mount_table();
  REQUIRE(table);
  REQUIRE(table->owner_of("/") != nullptr);
  CHECK(table->owner_of("/proc/self")->fs_type == "proc");
}

TEST_CASE("mount options are split into flags and the rest") {
  struct Row {
    const char* options;
    unsigned long flags;
    const char* rest;
  };
  const Row row = GENERATE(Row{"", 0, ""}, Row{"ro,nosuid", MS_RDONLY | MS_NOSUID, ""}, Row{"ro,rw", 0, ""},
                           Row{"defaults,size=1m,noexec,mode=755", MS_NOEXEC, "size=1m,mode=755"},
                           Row{"rbind", MS_BIND | MS_REC, ""});
  INFO(row.options);
  const MountFlags split = split_mount_options(row.options);
  CHECK(split.flags == row.flags);
  CHECK(split.rest == row.rest);
}

TEST_CASE("what mount.nfs says becomes one line with a kind and a cure") {
  const MountCall call{"srv:/data", "/mnt/data", "nfs", "", 1000ms};
  struct Row {
    const char* text;
    ErrorCode code;
    const char* message;
    const char* hint; ///< a part of it
  };
  const Row row = GENERATE(
      Row{"mount.nfs: access denied by server while mounting srv:/data\n", ErrorCode::permission,
          "/mnt/data: access denied by server while mounting srv:/data", "sharefs probe srv"},
      Row{"mount.nfs: Connection refused\n", ErrorCode::failed, "/mnt/data: Connection refused", "no NFS server"},
      Row{"mount.nfs4: mount system call failed for /mnt/data\n", ErrorCode::failed,
          "/mnt/data: mount system call failed for /mnt/data", "dmesg"},
      Row{"\nmount.nfs: Connection timed out\nmount.nfs: more\n", ErrorCode::timeout, "/mnt/data: Connection timed out",
          "sharefs probe srv"},
      Row{"mount.nfs: rpc.statd is not running but is required for remote locking.\nmount.nfs: Either use\n",
          ErrorCode::failed, "/mnt/data: rpc.statd is not running but is required for remote locking", "rpc-statd"},
      Row{"mount.nfs: mounting srv:/data failed, reason given by server: No such file or directory\n",
          ErrorCode::not_found,
          "/mnt/data: mounting srv:/data failed, reason given by server: No such file or directory", "fsid=0"},
      Row{"mount.nfs: mount point /mnt/data does not exist\n", ErrorCode::not_found,
          "/mnt/data: mount point /mnt/data does not exist", "make the directory"},
      Row{"", ErrorCode::failed, "/mnt/data: mount.nfs failed without a word", ""});
  INFO(row.text);
  const Error error = mount_error(call, row.text);
  CHECK(error.code == row.code);
  CHECK(error.message == row.message);
  CHECK(error.hint.find(row.hint) != std::string::npos);
}

TEST_CASE("mounting and unmounting for real") {
  const test::TemporaryDirectory directory;
  const std::string text = in_namespace([&] {
    const MountCall mount{"none", directory.path(), "tmpfs", "size=64k,nosuid", 2000ms};
    const UnmountCall unmount{directory.path(), false, false, 2000ms};
    std::string log = told(end_mount(unmount)) + "\n";
    log += told(make_mount(mount)) + "\n";
    log += read_mount_table()->at(directory.path())->options + "\n";
    log += told(make_mount(mount)) + "\n"; // on top of each other
    log += told(end_mount(unmount)) + "\n";
    const int holder = ::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log += told(end_mount(unmount)) + "\n";
    log += told(end_mount({directory.path(), false, true, 2000ms})) + "\n";
    log += read_mount_table()->at(directory.path()) == nullptr ? "gone\n" : "there\n";
    ::close(holder);
    log += told(make_mount({"none", directory / "none", "tmpfs", "", 2000ms})) + "\n";
    return log + told(make_mount({"none", directory.path(), "nosuchfs", "", 2000ms}));
  });
  if (text == "not here") {
    WARN("no right to mount here");
    return;
  }
  CHECK(text == "not_found " + directory.path() + ": is not a mount point\nok\nrw,nosuid,relatime\nok\nok\nbusy " +
                    directory.path() + ": is in use\nok\ngone\nnot_found " + directory / "none" +
                    ": cannot mount tmpfs: No such file or directory\nfailed " + directory.path() +
                    ": cannot mount nosuchfs: No such device");
}

TEST_CASE("a hung mount is taken out of the table in time") {
  const test::TemporaryDirectory directory;
  const std::string text = in_namespace([&] {
    const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
    if (device < 0 || ::mount("hung", directory.path().c_str(), "fuse", MS_NODEV, options.c_str()) != 0)
      return std::string("not here");
    const auto begin = std::chrono::steady_clock::now();
    const auto ended = end_mount({directory.path(), true, true, 3000ms});
    return told(ended) + (std::chrono::steady_clock::now() - begin < 3500ms ? " in time" : " too late");
  });
  if (text == "not here")
    WARN("no right to mount FUSE here");
  else
    CHECK(text == "ok in time");
}

TEST_CASE("a server that refuses is told in mount.nfs' words") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  const auto mounted = make_mount({"127.0.0.1:/none", directory.path(), "nfs", "vers=4.2,port=1,retry=0", 2000ms});
  REQUIRE_FALSE(mounted); // refused, or no nfs-common, or a kernel without NFS: never an empty success
  CHECK_FALSE(mounted.error().message.empty());
}

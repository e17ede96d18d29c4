#include "sys/mounting/mounting.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/process/call.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

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

/// Runs `work` as root of an own mount namespace; its text, or "not here" without the right to do so.
std::string in_namespace(const std::function<std::string()>& work) {
  const auto answer = call(std::nullopt, 60s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("not here");
    return work();
  });
  return answer ? *answer : answer.error().message;
}

std::string text_of(const Result<void>& result) {
  return result ? "ok" : std::string(to_string(result.error().code)) + " " + result.error().message;
}

} // namespace

TEST_CASE("the mount table of this process") {
  const auto table = MountWatch().current();
  REQUIRE(table);
  REQUIRE(table->owner_of("/") != nullptr);
  CHECK(table->owner_of("/proc/self")->fs_type == "proc");
}

TEST_CASE("what mount.nfs says becomes one line with a kind and a cure") {
  const MountCall call{"srv:/data", "/mnt/data", "nfs", "", 1000ms};
  struct Row {
    const char* text;
    ErrorCode code;
    const char* message;
    const char* hint; ///< a part of it
  };
  const Row row =
      GENERATE(Row{"mount.nfs: access denied by server while mounting srv:/data\n", ErrorCode::permission,
                   "srv does not let this host mount /data", "sharefs probe srv"},
               Row{"mount.nfs: Connection refused\n", ErrorCode::failed, "Connection refused", "no NFS server"},
               Row{"mount.nfs4: mount system call failed for /run/sharefs-mount\n", ErrorCode::failed,
                   "mount system call failed for /mnt/data", "dmesg"},
               Row{"\nmount.nfs: Connection timed out\nmount.nfs: more\n", ErrorCode::timeout, "Connection timed out",
                   "sharefs probe srv"},
               Row{"mount.nfs: rpc.statd is not running but is required for remote locking.\nmount.nfs: Either use\n",
                   ErrorCode::failed, "rpc.statd is not running but is required for remote locking", "rpc-statd"},
               Row{"mount.nfs: mounting srv:/data failed, reason given by server: No such file or directory\n",
                   ErrorCode::not_found, "srv has no directory /data", "fsid=0"},
               Row{"", ErrorCode::failed, "mount.nfs failed without a message", ""});
  INFO(row.text);
  const Error error = mount_error(call, row.text);
  CHECK(error.code == row.code);
  CHECK(error.message == row.message);
  CHECK(error.hint.find(row.hint) != std::string::npos);
}

TEST_CASE("a failed mount calls its server as sharefs.yaml does") {
  const MountCall call{"10.77.0.1:/x", "/mnt/data", "nfs", "", 1000ms, "storage1"};
  const Error error = mount_error(call, "mount.nfs: reason given by server: No such file or directory\n");
  CHECK(error.message == "storage1 has no directory /x");
  CHECK(error.hint.find("sharefs probe storage1`") != std::string::npos);
}

TEST_CASE("the hint of a failed mount asks the port of the mount") {
  MountCall call{"srv:/data", "/data/share", "nfs4", "hard,port=20490"};
  CHECK(mount_error(call, "mount.nfs: Connection refused").hint.ends_with("`sharefs probe --port=20490 srv`"));
  call.options = "hard,proto=rdma,port=20049"; // no TCP port
  CHECK(mount_error(call, "mount.nfs: Connection refused").hint.ends_with("`sharefs probe srv`"));
  call.options = "vers=3,port=2049,mountport=20048"; // behind a firewall that has no hole for the portmapper
  CHECK(mount_error(call, "mount.nfs: Connection refused").hint.ends_with("`sharefs probe --mountport=20048 srv`"));
  call.options = "vers=3,port=20490,mountport=20048";
  CHECK(mount_error(call, "mount.nfs: Permission denied").hint ==
        "run `sharefs probe --port=20490 --mountport=20048 srv`");
}

TEST_CASE("a mount that was not made in time names what was waited for") {
  const Error late{ErrorCode::timeout, "no answer within 1.0 s", "", ""}, ended{ErrorCode::interrupted, "", "", ""};
  const MountCall nfs{"srv:/data", "/mnt/data", "nfs4", "port=20049", 1000ms};
  CHECK(child_error(nfs, late).message == "mount.nfs gave no answer within 1.0 s");
  CHECK(child_error(nfs, late).hint == "run `sharefs probe --port=20049 srv:/data`");
  CHECK(child_error(nfs, ended).message == "mount.nfs was ended; nothing is mounted");
  const Error from_server{ErrorCode::timeout, "server srv does not answer", "run `sharefs probe srv`", ""};
  CHECK(child_error(nfs, from_server).message == from_server.message);
  CHECK(child_error({"/data/env.squashfs", "/opt/env", k_image, "ro", 1000ms}, from_server).hint == from_server.hint);
  for (const auto& [call, what] : {std::pair{MountCall{"/data/env.squashfs", "/opt/env", k_image, "ro", 1000ms},
                                             "mounting /data/env.squashfs on /opt/env"},
                                   {MountCall{"/data/env.squashfs", "/home/a/env", k_user_image, "ro", 1000ms},
                                    "mounting /data/env.squashfs on /home/a/env"},
                                   {MountCall{"/srv/x", "/data/x", k_bind, "ro", 1000ms}, "mounting /srv/x on /data/x"},
                                   {MountCall{"", "/data/x", k_remount, "ro", 1000ms}, "the remount of /data/x"}}) {
    CHECK(child_error(call, late).message == what + std::string(" gave no answer within 1.0 s"));
    CHECK(child_error(call, late).hint == "run `sharefs status` to see which share hangs");
    CHECK(child_error(call, ended).message ==
          what + std::string(call.fs_type == k_remount ? " was ended" : " was ended; nothing is mounted"));
  }
}

TEST_CASE("the value of a mount option") {
  CHECK(option_value("rw,port=1,port=20490,hard", "port") == "20490");
  CHECK(option_value("rw,port=1,nolock", "nolock") == "");
  CHECK(option_value("port=", "port") == "");
  CHECK(option_value("mountport=1,ports=2", "port") == std::nullopt);
  CHECK(option_value("", "port") == std::nullopt);
}

TEST_CASE("unmounting for real") {
  const test::TemporaryDirectory directory;
  const std::string text = in_namespace([&] {
    const UnmountCall unmount{directory / "mnt", false, false, "", "", "", 30s};
    const auto mount = [&] { return ::mount("none", unmount.target.c_str(), "tmpfs", 0, "size=64k"); };
    ::mkdir(unmount.target.c_str(), 0755);
    std::string log = text_of(end_mount(unmount)) + "\n";
    if (mount() != 0)
      return std::string("not here");
    mount(); // on top of each other
    log += text_of(end_mount(unmount)) + "\n";
    const int holder = ::open(unmount.target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log += text_of(end_mount(unmount)) + "\n";
    auto lazy = unmount;
    lazy.lazy = true;
    log += text_of(end_mount(lazy)) + "\n";
    log += MountWatch().current()->at(unmount.target) == nullptr ? "gone" : "there";
    ::close(holder);
    return log;
  });
  if (text == "not here") {
    WARN("no right to mount here");
    return;
  }
  CHECK(text == "not_found " + directory / "mnt" + ": is not a mount point\nok\nbusy " + directory / "mnt" +
                    ": is in use\nok\ngone");
}

TEST_CASE("a mount point that is a link, or has one on the way, is refused") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  REQUIRE(::mkdir((directory / "real").c_str(), 0755) == 0);
  REQUIRE(::symlink("real", (directory / "link").c_str()) == 0);
  for (const auto* name : {"link", "link/below", "none", "real/none"}) {
    const MountCall call{"127.0.0.1:/none", directory / name, "nfs", "vers=4.2,port=1,retry=0", 30s};
    const auto mounted = make_mount(call);
    REQUIRE_FALSE(mounted);
    INFO(mounted.error().message);
    CHECK(mounted.error().code == ErrorCode::conflict);
  }
}

TEST_CASE("a hung mount is taken out of the table in time") {
  const test::TemporaryDirectory directory;
  const std::string text = in_namespace([&] {
    const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
    if (device < 0 || ::mount("hung", directory.path().c_str(), "fuse", MS_NODEV, options.c_str()) != 0)
      return std::string("not here");
    const auto begin = std::chrono::steady_clock::now();
    const auto ended = end_mount({directory.path(), true, true, "", "", "", 10s});
    return text_of(ended) + (std::chrono::steady_clock::now() - begin < 15s ? " in time" : " too late");
  });
  if (text == "not here")
    WARN("no right to mount FUSE here");
  else
    CHECK(text == "ok in time");
}

TEST_CASE("a server that refuses is reported in mount.nfs' words") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  const auto mounted = make_mount({"127.0.0.1:/none", directory.path(), "nfs", "vers=4.2,port=1,retry=0", 2000ms});
  REQUIRE_FALSE(mounted); // refused, or no nfs-common, or a kernel without NFS: never an empty success
  CHECK_FALSE(mounted.error().message.empty());
}

TEST_CASE("a directory of this host is bound to a second place, with its options, through no link, and unbound") {
  const test::TemporaryDirectory directory;
  fs::create_directories(directory / "srv/share");
  fs::create_directories(directory / "data");
  fs::create_directory_symlink("srv", directory / "link");
  directory.write("srv/share/file", "x");
  const std::string text = in_namespace([&] {
    MountCall call{directory / "srv/share", directory / "data", k_bind, "rw,nosuid,nodev", 30s};
    std::string log = text_of(make_mount(call)) + "\n";
    const auto table = MountWatch().current();
    if (!table)
      return table.error().message;
    log += table->is_bind(call.target, call.source) && !table->is_bind(call.target, directory / "srv") ? "is it\n" : "";
    log += table->at(call.target) == nullptr ? "" : table->at(call.target)->options.substr(0, 15) + "\n";
    log += fs::exists(directory / "data/file") ? "file\n" : "";
    log += text_of(end_mount({call.target, false, false, call.source, k_bind, "", 30s})) + "\n";
    log += fs::exists(directory / "srv/share/file") ? "file\n" : "";
    call.source = directory / "link/share";
    return log + text_of(make_mount(call)).substr(0, 9);
  });
  if (text == "not here")
    WARN("no right to mount here");
  else
    CHECK(text == "ok\nis it\nrw,nosuid,nodev\nfile\nok\nfile\nconflict ");
}

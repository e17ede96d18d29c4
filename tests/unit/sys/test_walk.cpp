#include "sys/fs/walk.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/process/call.hpp"
#include "sys/process/rights.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::sys;
namespace fs = std::filesystem;

namespace {

/// "REAL PATH TEXT", or the errno and where it stopped.
std::string walked(const std::string& root, const std::string& path, const WalkRule& rule = {}) {
  const Fd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto found = walk(directory.get(), path, rule);
  if (rule.wants_directory && found && !found->directory)
    return "no descriptor of the directory";
  if (!found)
    return (found.error().may_hang ? "may hang" : std::to_string(found.error().error_number)) + " " +
           found.error().path + " of " + found.error().resolved;
  return found->resolved + " " + found->text() + " in " + found->ancestor +
         (found->parent_missing ? ", no parent" : "") + (found->not_directory ? ", no directory" : "");
}

} // namespace

TEST_CASE("walk: real paths, links and what is missing") {
  const test::TemporaryDirectory root;
  root.write("a/b/file", "x");
  fs::create_symlink("/a/b", root / "absolute"); // of the root, not of the host
  fs::create_symlink("../a/./b/../b", root / "a/up");
  fs::create_symlink("../../../../etc", root / "out");
  fs::create_symlink("loop", root / "loop");
  fs::create_symlink("/", root / "a/root");
  fs::create_symlink(".", root / "a/here");
  const auto& r = root.path();
  CHECK(walked(r, "/") == "/ a directory in /");
  CHECK(walked(r, "/a/b/file") == "/a/b/file a file in /a/b");
  CHECK(walked(r, "//a/./b/") == "/a/b a directory in /a");
  CHECK(walked(r, "/absolute") == "/absolute a link to `/a/b` in /");
  CHECK(walked(r, "/absolute", {.follow_last = true}) == "/a/b a directory in /a");
  CHECK(walked(r, "/absolute/file") == "/a/b/file a file in /a/b");
  CHECK(walked(r, "/a/root", {.follow_last = true}) == "/ a directory in /");
  CHECK(walked(r, "/a/here", {.follow_last = true}) == "/a a directory in /");
  CHECK(walked(r, "/a/here/b", {.follow_last = true}) == "/a/b a directory in /a");
  CHECK(walked(r, "/a/up/file") == "/a/b/file a file in /a/b");
  CHECK(walked(r, "/absolute/../up/file") == "/a/b/file a file in /a/b"); // `..` of where the link leads
  CHECK(walked(r, "/out/passwd") == "/etc/passwd nothing in /, no parent");
  CHECK(walked(r, "/a/none") == "/a/none nothing in /a");
  CHECK(walked(r, "/a/none/x/../y") == "/a/none/y nothing in /a, no parent");
  CHECK(walked(r, "/a/b/file/x") == "/a/b/file/x nothing in /a/b, no parent, no directory");
  CHECK(walked(r, "/loop/x") == std::to_string(ELOOP) + " /loop of /loop/x");
}

TEST_CASE("walk: a root that could not be opened is the error that its open(2) had") {
  errno = EMFILE;
  const auto found = walk(-1, "/a/b");
  REQUIRE_FALSE(found);
  CHECK(found.error().error().message == "/a/b: Too many open files");
}

TEST_CASE("walk: without the directory the answer is the same") {
  const test::TemporaryDirectory root;
  root.write("a/b/file", "x");
  root.write("mnt/x/y", "");
  fs::create_symlink("/a/b", root / "link");
  const MountTargets stops{"/mnt"};
  for (const auto* path : {"/", "/a/b", "/a/b/file", "//a/./b/", "/link", "/link/file", "/a/none", "/a/no/no/no",
                           "/a/b/file/x", "/a/../a/b", "/mnt", "/mnt/x/y", "/mnt2/x"})
    for (const bool follow : {false, true}) {
      INFO(path);
      CHECK(walked(root.path(), path, {.follow_last = follow, .stop_at = &stops, .wants_directory = false}) ==
            walked(root.path(), path, {.follow_last = follow, .stop_at = &stops}));
    }
  CHECK(walked(root.path(), "/mnt/x/y", {.stop_at = &stops, .wants_directory = false}) == "may hang /mnt of /mnt/x/y");
}

TEST_CASE("walk: rules for links") {
  const test::TemporaryDirectory root;
  root.write("home/real/file", "x");
  fs::create_symlink("real", root / "home/link");
  fs::create_symlink("home", root / "way");
  const auto& r = root.path();
  const auto refused = std::to_string(EPERM);
  CHECK(walked(r, "/home/link/file", {.links = Links::none}) == refused + " /home/link of /home/link/file");
  CHECK(walked(r, "/home/link", {.links = Links::none}) == "/home/link a link to `real` in /home");
  CHECK(walked(r, "/way/link/file", {.beneath = "/home"}) == refused + " /home/link of /home/link/file");
  CHECK(walked(r, "/way/real/file", {.beneath = "/home"}) == "/home/real/file a file in /home/real");
  CHECK(walked(r, "/home/link/file", {.links = Links::trusted}) == "/home/real/file a file in /home/real");
  if (::geteuid() != 0)
    return;
  REQUIRE(::lchown((root / "home/link").c_str(), 65534, 65534) == 0);
  CHECK(walked(r, "/home/link/file", {.links = Links::trusted}) == refused + " /home/link of /home/link/file");
  CHECK(walked(r, "/home/link/file") == "/home/real/file a file in /home/real");
}

TEST_CASE("walk: a guarded path is one that nobody else could replace") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory root;
  root.write("top/mine/file", "x");
  fs::permissions(root.path(), fs::perms(0755));
  const auto guarded = [&](const std::string& path) { return walked(root.path(), path, {.guarded = true}); };
  CHECK(guarded("/top/mine/file") == "/top/mine/file a file in /top/mine");
  fs::permissions(root / "top", fs::perms(0775)); // its group could rename `mine`
  CHECK(guarded("/top/mine/file") == std::to_string(EPERM) + " /top/mine of /top/mine/file");
  CHECK(guarded("/top") == "/top a directory in /");
  ::chmod((root / "top").c_str(), 01777); // as /tmp: only the owner of `mine` could
  CHECK(guarded("/top/mine/file") == "/top/mine/file a file in /top/mine");
  CHECK(guarded("/top/none") == "/top/none nothing in /top"); // who makes it finds out if another was first
  REQUIRE(::chown((root / "top/mine").c_str(), 65534, 65534) == 0);
  CHECK(guarded("/top/mine/file") == std::to_string(EPERM) + " /top/mine of /top/mine/file");
  fs::permissions(root / "top", fs::perms(0755));
  CHECK(guarded("/top/mine") == "/top/mine a directory in /top");
  CHECK(guarded("/top/mine/file") == std::to_string(EPERM) + " /top/mine/file of /top/mine/file");
}

TEST_CASE("walk: in a user namespace, root outside of it is known by where its files lie") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory root;
  root.write("etc/sharefs/sharefs.yaml", "x");
  root.write("tmp/mine/file", "x");
  root.write("tmp/theirs/file", "x");
  fs::create_symlink("/etc", root / "tmp/link");
  fs::permissions(root.path(), fs::perms(0755));
  ::chmod((root / "tmp").c_str(), 01777);
  const sys::User user{"user", 1000, 1000, {1000}, "/nonexistent"};
  REQUIRE(::chown((root / "tmp/mine").c_str(), user.uid, user.gid) == 0);
  REQUIRE(::chown((root / "tmp/theirs").c_str(), 1001, 1001) == 0);
  REQUIRE(::lchown((root / "tmp/link").c_str(), 1001, 1001) == 0);
  const auto inside = [&](const std::string& users, const std::string& path) {
    return test::as_user(user, [&]() -> std::string {
      ::prctl(PR_SET_DUMPABLE, 1); // else its maps would be root's, since it has become another user
      if (::unshare(CLONE_NEWUSER) != 0 || (!users.empty() && !map_ids("/proc/self/", users, "1000 1000 1\n")))
        return std::strerror(errno);
      return walked(root.path(), path, {.links = Links::trusted, .guarded = true});
    });
  };
  const auto refused = [](const std::string& at) { return std::to_string(EPERM) + " " + at; };
  const std::string mapped = "1000 1000 1\n", as_root = "0 1000 1\n";
  for (const auto& users : {mapped, as_root}) {
    CHECK(inside(users, "/etc/sharefs/sharefs.yaml") == "/etc/sharefs/sharefs.yaml a file in /etc/sharefs");
    CHECK(inside(users, "/tmp/mine/file") == "/tmp/mine/file a file in /tmp/mine");
    CHECK(inside(users, "/tmp/theirs/file") == refused("/tmp/theirs of /tmp/theirs/file"));
    CHECK(inside(users, "/tmp/link/sharefs") == refused("/tmp/link of /tmp/link/sharefs"));
  }
  // Nobody is mapped: its own files look like those of others.
  CHECK(inside("", "/etc/sharefs/sharefs.yaml") == "/etc/sharefs/sharefs.yaml a file in /etc/sharefs");
  CHECK(inside("", "/tmp/mine/file") == refused("/tmp/mine of /tmp/mine/file"));
  CHECK(inside("", "/tmp/theirs/file") == refused("/tmp/theirs of /tmp/theirs/file"));
}

TEST_CASE("walk: a mount that must not be entered ends it, also behind a link") {
  const test::TemporaryDirectory root;
  root.write("data/share/x", "");
  fs::create_symlink("/data/share/x", root / "link");
  const std::set<std::string, std::less<>> stop{"/data/share"};
  const auto& r = root.path();
  CHECK(walked(r, "/data/share/x/y", {.stop_at = &stop}) == "may hang /data/share of /data/share/x/y");
  CHECK(walked(r, "/link", {.stop_at = &stop}) == "/link a link to `/data/share/x` in /");
  CHECK(walked(r, "/link/../z", {.stop_at = &stop}) == "may hang /data/share of /data/share/z");
  CHECK(walked(r, "/data/sharex", {.stop_at = &stop}) == "/data/sharex nothing in /data");
}

TEST_CASE("open_below waits until a client of NFS has given a file back, which holds it by a lease") {
  const test::TemporaryDirectory root;
  root.write("file", "x");
  const Fd directory(::open(root.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd held(::open((root / "file").c_str(), O_RDWR | O_CLOEXEC));
  const auto before = std::signal(SIGIO, SIG_IGN);
  REQUIRE(::fcntl(held.get(), F_SETLEASE, F_WRLCK) == 0);
  std::jthread holder([&](const std::stop_token& end) {
    while (!end.stop_requested() && ::fcntl(held.get(), F_GETLEASE) == F_WRLCK)
      std::this_thread::yield();
    ::fcntl(held.get(), F_SETLEASE, F_UNLCK);
  });
  CHECK(open_below(directory.get(), "file", O_RDONLY | O_NONBLOCK));
  holder.request_stop();
  holder.join();
  std::signal(SIGIO, before);
}

// The actions on the access to directories, and on whole directories, each on a real tree.
#include "action_tree.hpp"
#include "plan/check_action.hpp"
#include "plan/directory_access.hpp"
#include "plan/perform.hpp"
#include "support/catch.hpp"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;
using test::Tree;

TEST_CASE("read_access: owner, mode, default ACL, and whether there can be one") {
  Tree tree;
  fs::create_directories(tree.at("/a/b"));
  ::chmod(tree.at("/a/b").c_str(), 0750);
  const auto found = read_access(tree.system, "/a/b", true);
  REQUIRE(found);
  CHECK(found->access == Access{::geteuid(), ::getegid(), 0750, ""});
  CHECK(found->acls); // of every local file system that tests run on
  CHECK(read_access(tree.system, "/a/c", true).error().code == ErrorCode::not_found);
  ::chmod(tree.at("/a").c_str(), 0777);
  CHECK(read_access(tree.system, "/a/b", true).error().code == ErrorCode::permission);
  CHECK(read_access(tree.system, "/a/b", false));
}

TEST_CASE("SetImmutable forbids writing in a directory, where its file system can") {
  Tree tree;
  fs::create_directory(tree.at("/d"));
  test::put(tree.at("/file"), "a");
  fs::create_symlink("d", tree.at("/l"));
  struct stat status{};
  REQUIRE(::stat(tree.at("/d").c_str(), &status) == 0);
  CHECK(tree.apply(SetImmutable{"/d", true, status.st_dev, status.st_ino + 1}) == "conflict");
  CHECK(tree.apply(SetImmutable{"/file"}) == "conflict");
  CHECK(tree.apply(SetImmutable{"/l"}) == "conflict");
  CHECK(tree.apply(SetImmutable{"/missing"}) == "conflict");
  for (const auto* other : {"/missing", "/l", "/file"}) // not the directory that was protected
    CHECK(tree.apply(SetImmutable{other, false}) == "unchanged");
  const SetImmutable protect{"/d", true, status.st_dev, status.st_ino};
  if (tree.apply(protect) == "done") { // root, on a file system with inode flags
    CHECK(tree.apply(protect) == "unchanged");
    CHECK(tree.apply(make_directory("/d/x")) == "permission");
    CHECK(tree.apply(*invert(protect)) == "done");
  }
  CHECK(tree.apply(make_directory("/d/x")) == "done");
  CHECK(tree.apply(*invert(protect)) == "unchanged");
}

TEST_CASE("SetImmutable in a directory of somebody else changes nothing, and is no error where nothing has to change") {
  if (::geteuid() != 0)
    return;
  Tree tree;
  fs::create_directories(tree.at("/of-alice/d"));
  REQUIRE(::chown(tree.at("/of-alice").c_str(), 54321, 54321) == 0);
  const auto flag_of = [&](bool immutable) {
    const sys::Fd directory(::open(tree.at("/of-alice/d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int flags = immutable ? FS_IMMUTABLE_FL : 0;
    return ::ioctl(directory.get(), FS_IOC_SETFLAGS, &flags) == 0;
  };
  fs::create_directory(tree.at("/etc"));
  fs::create_symlink("/etc", tree.at("/of-alice/l"));
  REQUIRE(::lchown(tree.at("/of-alice/l").c_str(), 54321, 54321) == 0);
  CHECK(tree.apply(SetImmutable{"/of-alice/l/d", false}) == "unchanged"); // a link that alice has planted
  std::string said;
  CHECK(perform(SetImmutable{"/of-alice/d"}, tree.system, [&](const std::string& text, bool) { said = text; }) ==
        Outcome::unchanged);
  if (!flag_of(true))
    return; // its file system has no such flag
  CHECK(tree.apply(SetImmutable{"/of-alice/d"}) == "unchanged");
  CHECK(tree.apply(SetImmutable{"/of-alice/d", false}) == "permission");
  REQUIRE(flag_of(false));
  CHECK(said.find("others could replace `d`: `/of-alice` belongs to uid 54321") != std::string::npos);
  CHECK(tree.apply(SetImmutable{"/of-alice/d"}) == "unchanged");
  CHECK(tree.apply(make_directory("/of-alice/d/x")) == "done"); // it was left as it is
  CHECK(tree.apply(SetImmutable{"/of-alice/d", false}) == "unchanged");
}

TEST_CASE("SetAccess sets owner, mode and default ACL, and knows a half-done one") {
  Tree tree;
  const bool is_root = ::geteuid() == 0;
  const uid_t uid = is_root ? 54321 : ::geteuid();
  const gid_t gid = is_root ? 54322 : ::getegid();
  fs::create_directory(tree.at("/d"));
  ::chmod(tree.at("/d").c_str(), 0700);
  const Access old{::geteuid(), ::getegid(), 0700, ""};
  const Access wanted{uid, gid, 02775, "u::rwx,g::rwx,o::r-x"};

  const auto checked = check_action(SetAccess{"/d", {}, wanted}, tree.system);
  REQUIRE(checked);
  CHECK(checked->intent == Action(SetAccess{"/d", old, wanted}));
  const auto first = tree.apply(SetAccess{"/d", old, wanted});
  if (first == "unsupported")
    WARN("no POSIX ACLs in " + tree.root.path() + ": " + tree.last.message);
  else
    CHECK(first == "done");
  CHECK(tree.apply(SetAccess{"/d", old, wanted}) == (first == "done" ? "unchanged" : "unsupported"));
  CHECK(tree.mode("/d") == 02775);
  struct stat status{};
  REQUIRE(::stat(tree.at("/d").c_str(), &status) == 0);
  CHECK(status.st_uid == uid);
  CHECK(status.st_gid == gid);

  ::chmod(tree.at("/d").c_str(), 0775); // as if killed between chown and chmod
  CHECK(tree.apply(SetAccess{"/d", wanted, old}) == "done");
  CHECK(tree.mode("/d") == 0700);
  ::chmod(tree.at("/d").c_str(), 0711); // by somebody else
  CHECK(tree.apply(SetAccess{"/d", old, wanted}) == "conflict");
  CHECK(tree.last.message.find("found mode 0711") != std::string::npos);
  CHECK(tree.apply(SetAccess{"/d", {}, Access{::geteuid(), ::getegid(), 0700, "u::rwx,nonsense"}}) == "failed");

  fs::create_symlink("d", tree.at("/l"));
  CHECK(tree.apply(SetAccess{"/l", {}, wanted}) == "permission");
  CHECK(tree.apply(SetAccess{"/missing", {}, wanted}) == "not_found");
}

TEST_CASE("attack: a new group of a directory looks for the moment in which it has the rights of the old one") {
  if (::geteuid() != 0)
    return;
  Tree tree;
  fs::create_directory(tree.at("/d"));
  ::chmod(tree.root.path().c_str(), 0755); // NOLINT: the attacker is to reach it
  const Access shared{0, 54322, 02770, "u::rwx,g::rwx,o::---"}, kept{0, 54323, 02700, ""};
  REQUIRE(tree.apply(SetAccess{"/d", {}, shared}) == "done");
  const sys::Fd above(::open(tree.root.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const pid_t attacker = ::fork();
  if (attacker == 0) {
    const gid_t group = 54323;
    if (::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 || ::setresuid(54321, 54321, 54321) != 0)
      ::_exit(2);
    while (::openat(above.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0)
      ;
    ::_exit(1);
  }
  int status = 0;
  pid_t ended = 0;
  for (int round = 0; round < 100 && ended == 0; ++round) {
    CHECK(tree.apply(SetAccess{"/d", {}, kept}) == "done");
    CHECK(tree.apply(SetAccess{"/d", {}, shared}) == "done");
    ended = ::waitpid(attacker, &status, WNOHANG);
  }
  CHECK(ended == 0);
  ::kill(attacker, SIGKILL);
  ::waitpid(attacker, nullptr, 0);
}

TEST_CASE("RemoveTree deletes the directory that was planned, and nothing else") {
  Tree tree;
  const auto planned = [&tree](const std::string& path) {
    struct stat status{};
    REQUIRE(::lstat(tree.at(path).c_str(), &status) == 0);
    return RemoveTree{path, status.st_dev, status.st_ino};
  };
  test::put(tree.at("/victim/file"), "precious");
  test::put(tree.at("/cache/a/b/c/file"), "x");
  test::put(tree.at("/cache/file"), "x");
  fs::create_directory_symlink("/victim", tree.at("/cache/a/link"));
  fs::create_symlink(tree.at("/victim/file"), tree.at("/cache/link"));
  REQUIRE(::mkfifo(tree.at("/cache/fifo").c_str(), 0600) == 0);
  const auto cache = planned("/cache");
  const auto checked = check_action(cache, tree.system);
  REQUIRE(checked);
  CHECK_FALSE(checked->already);
  CHECK_FALSE(invert(cache));

  // Exchanged after the plan was made: by another directory, or by a link.
  fs::rename(tree.at("/cache"), tree.at("/moved"));
  fs::rename(tree.at("/victim"), tree.at("/cache"));
  CHECK(tree.apply(cache) == "conflict");
  fs::rename(tree.at("/cache"), tree.at("/victim"));
  fs::create_directory_symlink("victim", tree.at("/cache"));
  CHECK(tree.apply(cache) == "conflict");
  CHECK(test::content_of(tree.at("/victim/file")) == "precious");
  fs::remove(tree.at("/cache"));
  fs::rename(tree.at("/moved"), tree.at("/cache"));

  CHECK(tree.apply(cache) == "done");
  CHECK_FALSE(fs::exists(tree.at("/cache")));
  CHECK(test::content_of(tree.at("/victim/file")) == "precious");
  CHECK(tree.apply(cache) == "unchanged");
  CHECK(tree.apply(RemoveTree{"/victim/file", 1, 1}) == "conflict");

  if (::geteuid() == 0) { // where a user could replace it, root deletes nothing
    fs::create_directories(tree.at("/open/cache"));
    const auto open = planned("/open/cache");
    ::chmod(tree.at("/open").c_str(), 0777);
    CHECK(tree.apply(open) == "permission");
    ::chmod(tree.at("/open").c_str(), 01777);
    CHECK(tree.apply(open) == "done");
  }
}

TEST_CASE("RemoveTree under attack: directories are exchanged for links while it works") {
  Tree tree;
  test::put(tree.at("/victim/file"), "precious");
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i)
      test::put(tree.at("/cache/" + std::to_string(i) + "/file"), "x");
    fs::create_directory_symlink("../victim", tree.at("/cache/link"));
    const pid_t attacker = ::fork();
    if (attacker == 0)
      for (unsigned i = 0;; ++i) // RENAME_EXCHANGE: at every moment one of the two is there
        ::renameat2(AT_FDCWD, tree.at("/cache/" + std::to_string(i % 20)).c_str(), AT_FDCWD,
                    tree.at("/cache/link").c_str(), RENAME_EXCHANGE);
    struct stat status{};
    REQUIRE(::stat(tree.at("/cache").c_str(), &status) == 0);
    const auto outcome = tree.apply(RemoveTree{"/cache", status.st_dev, status.st_ino});
    ::kill(attacker, SIGKILL);
    ::waitpid(attacker, nullptr, 0);
    CAPTURE(outcome, tree.last.message);
    REQUIRE(test::content_of(tree.at("/victim/file")) == "precious");
    CHECK(fs::exists(tree.at("/victim")));
    fs::remove_all(tree.at("/cache"));
  }
}

// SetTreeAccess on real trees: what becomes of each kind of file, and what an attacker can do meanwhile.
#include "plan/apply.hpp"
#include "plan/check_action.hpp"
#include "plan/perform.hpp"
#include "support/catch.hpp"
#include "tree/acl.hpp"
#include "tree/share_with_group.hpp"
#include "willing_machine.hpp"

#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/acl.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t k_gid = 3000;

struct Shared {
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  std::vector<std::string> said;
  Error last;

  Shared() {
    ::chmod(root.path().c_str(), 0755);
    fs::create_directories(at("/var/lib/sharefs"));
    ::chmod(at("/var/lib/sharefs").c_str(), 0700);
    fs::create_directories(at("/share"));
  }
  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + path; }
  void file(const std::string& path, mode_t mode, uid_t owner = 2001) const {
    test::put(at(path), "x");
    REQUIRE(::chown(at(path).c_str(), owner, owner) == 0);
    REQUIRE(::chmod(at(path).c_str(), mode) == 0);
  }
  void directory(const std::string& path, mode_t mode, uid_t owner = 2001) const {
    fs::create_directories(at(path));
    REQUIRE(::chown(at(path).c_str(), owner, owner) == 0);
    REQUIRE(::chmod(at(path).c_str(), mode) == 0);
  }
  [[nodiscard]] SetTreeAccess action(std::uint32_t mode = 02770) const {
    struct stat status{};
    REQUIRE(::lstat(at("/share").c_str(), &status) == 0);
    return {"/share", "ml", k_gid, mode, status.st_dev, status.st_ino};
  }
  std::string apply(SetTreeAccess action) {
    said.clear();
    const auto outcome = perform(action, system, [&](const std::string& text, bool lasting) {
      if (lasting)
        said.push_back(text);
    });
    last = outcome ? Error{} : outcome.error();
    return outcome ? to_string(*outcome) : to_string(outcome.error().code);
  }
  /// "2001:3000 0660", and the ACLs.
  [[nodiscard]] std::string state(const std::string& path) const {
    struct stat status{};
    if (::lstat(at(path).c_str(), &status) != 0)
      return "gone";
    auto text = fmt::format("{}:{} {:04o}", status.st_uid, status.st_gid, status.st_mode & 07777U);
    const int fd = ::open(at(path).c_str(), O_PATH | O_NOFOLLOW);
    for (const auto type : {ACL_TYPE_ACCESS, ACL_TYPE_DEFAULT})
      if (const auto acl = S_ISLNK(status.st_mode) ? Result<std::string>("") : tree::read_acl(fd, type, path);
          acl && !acl->empty())
        text += " " + *acl;
    ::close(fd);
    return text;
  }
  void acl(const std::string& path, const std::string& text, acl_type_t type = ACL_TYPE_ACCESS) const {
    const int fd = ::open(at(path).c_str(), O_PATH);
    REQUIRE(tree::write_acl(fd, type, path, text));
    ::close(fd);
  }
  [[nodiscard]] std::map<std::string, std::string> states() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(at("/share")))
      all[entry.path().string().substr(root.path().size())] = state(entry.path().string().substr(root.path().size()));
    return all;
  }
};

} // namespace

TEST_CASE("the group gets what the owner has, and nobody else anything") {
  struct Row {
    tree::Access before;
    bool directory;
    std::uint32_t mode; ///< of the directory above
    tree::Access after;
  };
  for (const auto& [before, directory, mode, after] : std::vector<Row>{
           {{0, 1, 0644, ""}, false, 02770, {0, k_gid, 0664, ""}},
           {{0, 1, 0600, ""}, false, 02775, {0, k_gid, 0660, ""}},
           {{0, 1, 0755, ""}, false, 02770, {0, k_gid, 0775, ""}},
           {{0, 1, 0444, ""}, false, 02770, {0, k_gid, 0444, ""}},
           {{0, 1, 0640, ""}, false, 02750, {0, k_gid, 0640, ""}},
           {{0, 1, 0670, ""}, false, 02770, {0, k_gid, 0670, ""}}, // never taken away
           {{0, 1, 0700, ""}, true, 02770, {0, k_gid, 02770, "u::rwx,g::rwx,o::---"}},
           {{0, 1, 0755, ""}, true, 02775, {0, k_gid, 02775, "u::rwx,g::rwx,o::r-x"}},
           {{0, 1, 0700, ""}, true, 02775, {0, k_gid, 02770, "u::rwx,g::rwx,o::---"}}, // closed stays closed
           {{0, 1, 01777, ""}, true, 03770, {0, k_gid, 03777, "u::rwx,g::rwx,o::---"}},
           {{0, 1, 0755, ""}, true, 0770, {0, k_gid, 0775, "u::rwx,g::rwx,o::---"}},
       }) {
    INFO(before.mode);
    CHECK(tree::access_for_group(before, directory, k_gid, mode) == after);
  }
}

TEST_CASE("SetTreeAccess: each kind of file, twice") {
  if (::geteuid() != 0)
    return;
  Shared tree;
  tree.directory("/share", 02770, 0);
  tree.directory("/share/env", 0700);
  tree.directory("/share/env/bin", 0755);
  tree.file("/share/env/bin/python", 0755);
  tree.file("/share/env/token", 0600);
  tree.file("/share/sp ace\n\\", 0644, 2002);
  tree.acl("/share/env/bin", "u::rwx,u:7:r-x,g::r-x,m::r-x,o::---", ACL_TYPE_DEFAULT);
  // Left as they are:
  tree.file("/share/acl", 0640);
  tree.acl("/share/acl", "u::rw-,u:5:rwx,g::r--,m::r--,o::---");
  tree.file("/share/setuid", 04755, 0);
  tree.file("/secret", 0600, 0);
  fs::create_hard_link(tree.at("/secret"), tree.at("/share/linked"));
  fs::create_symlink("/secret", tree.at("/share/link"));
  fs::create_directory_symlink("/var", tree.at("/share/dirlink"));
  REQUIRE(::mkfifo(tree.at("/share/fifo").c_str(), 0600) == 0);
  const auto before = tree.states();
  const auto top = tree.state("/share");

  const auto checked = check_action(tree.action(), tree.system);
  REQUIRE(checked);
  CHECK_FALSE(checked->already);
  CHECK(tree.states() == before);

  CHECK(tree.apply(tree.action()) == "done");
  CHECK(tree.said.size() == 1);
  CHECK(tree.said[0].starts_with("/share: 5 paths changed; left as they are: 4 paths ("));
  for (const auto* left :
       {"linked: a file with several names (hard links), of which others may lie elsewhere",
        "setuid: a program with set-id bits or capabilities", "acl: it has an ACL", "fifo: a special file"})
    CHECK(tree.said[0].find(left) != std::string::npos);
  CHECK(tree.state("/share") == top); // SetAccess does that one
  CHECK(tree.state("/share/env") == "2001:3000 2770 u::rwx,g::rwx,o::---");
  CHECK(tree.state("/share/env/bin") == "2001:3000 2775 u::rwx,g::rwx,o::---");
  CHECK(tree.state("/share/env/bin/python") == "2001:3000 0775");
  CHECK(tree.state("/share/env/token") == "2001:3000 0660");
  CHECK(tree.state("/share/sp ace\n\\") == "2002:3000 0664");
  for (const auto* same :
       {"/share/acl", "/share/setuid", "/share/linked", "/share/link", "/share/dirlink", "/share/fifo"})
    CHECK(tree.state(same) == before.at(same));
  const auto again = check_action(tree.action(), tree.system);
  REQUIRE(again);
  CHECK(again->already);
  CHECK_FALSE(invert(tree.action()));
}

TEST_CASE("SetTreeAccess: another directory than planned, and a path that others could replace") {
  if (::geteuid() != 0)
    return;
  Shared tree;
  tree.file("/share/a", 0600);
  auto other = tree.action();
  ++other.inode;
  CHECK(tree.apply(other) == "conflict");
  fs::create_directories(tree.at("/open"));
  ::chmod(tree.at("/open").c_str(), 0777);
  fs::rename(tree.at("/share"), tree.at("/open/share"));
  other = {"/open/share", "ml", k_gid, 02770, other.device, other.inode - 1};
  CHECK(tree.apply(other) == "permission");
  CHECK(tree.state("/open/share/a") == "2001:2001 0600");
}

TEST_CASE("SetTreeAccess that was cut off goes on") {
  if (::geteuid() != 0)
    return;
  Shared tree;
  constexpr int k_files = 3000;
  for (int i = 0; i < k_files; ++i)
    tree.file(fmt::format("/share/{}/{}", i % 30, i), i % 2 == 0 ? 0600 : 0644);
  for (int round = 0; round < 12; ++round) {
    const auto action = tree.action();
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      static_cast<void>(perform(action, tree.system));
      ::_exit(0);
    }
    ::setpgid(child, child);
    ::usleep(static_cast<useconds_t>(2000 + 3000 * round));
    ::kill(-child, SIGKILL); // with the child that does the work
    ::waitpid(child, nullptr, 0);
  }
  tree.apply(tree.action());
  for (const auto& [path, state] : tree.states())
    if (fs::is_regular_file(tree.at(path)))
      CHECK(state.starts_with("2001:3000 066"));
  CHECK(check_action(tree.action(), tree.system)->already);
}

TEST_CASE("SetTreeAccess of 300,000 files", "[.bench]") {
  Shared tree;
  for (int i = 0; i < 300'000; ++i) {
    if (i % 300 == 0)
      fs::create_directories(tree.at(fmt::format("/share/{}", i / 300)));
    ::close(::open(tree.at(fmt::format("/share/{}/{}", i / 300, i)).c_str(), O_CREAT | O_WRONLY, 0644));
  }
  for (int round = 0; round < 2; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const auto outcome = tree.apply(tree.action());
    const auto took = std::chrono::steady_clock::now() - begin;
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    WARN(outcome << " " << (tree.said.empty() ? "" : tree.said.front()) << ": " << took / std::chrono::milliseconds(1)
                 << " ms, at most " << usage.ru_maxrss / 1024 << " MiB");
  }
}

TEST_CASE("SetTreeAccess under attack: links take the place of files and directories while it works") {
  if (::geteuid() != 0)
    return;
  for (int round = 0; round < 10; ++round) {
    Shared tree;
    tree.file("/victim/file", 0600, 0);
    tree.directory("/victim", 0700, 0);
    const auto victim = tree.state("/victim") + tree.state("/victim/file");
    for (int i = 0; i < 20; ++i)
      tree.file(fmt::format("/share/{}/file", i), 0600);
    fs::create_directory_symlink("../victim", tree.at("/share/link"));
    fs::create_symlink("../../victim/file", tree.at("/share/0/filelink"));
    const pid_t attacker = ::fork();
    if (attacker == 0)
      for (unsigned i = 0;; ++i) { // at every moment one of the two is there
        ::renameat2(AT_FDCWD, tree.at("/share/" + std::to_string(i % 20)).c_str(), AT_FDCWD,
                    tree.at("/share/link").c_str(), RENAME_EXCHANGE);
        ::renameat2(AT_FDCWD, tree.at("/share/0/file").c_str(), AT_FDCWD, tree.at("/share/0/filelink").c_str(),
                    RENAME_EXCHANGE);
        [[maybe_unused]] const int linked =
            ::link(tree.at("/victim/file").c_str(), tree.at("/share/1/planted").c_str());
        ::unlink(tree.at("/share/1/planted").c_str());
      }
    const auto outcome = tree.apply(tree.action());
    ::kill(attacker, SIGKILL);
    ::waitpid(attacker, nullptr, 0);
    CAPTURE(outcome, tree.last.message);
    REQUIRE(tree.state("/victim") + tree.state("/victim/file") == victim);
  }
}

namespace {

void attack_with_a_file_of_root(int rounds) {
  if (::geteuid() != 0)
    return;
  Shared tree;
  tree.file("/victim/file", 0600, 0);
  tree.directory("/share/1", 0770);
  const auto victim = tree.state("/victim/file");
  const pid_t attacker = ::fork();
  if (attacker == 0)
    for (;;) { // the file has one name most of the time, and sometimes that of the share
      [[maybe_unused]] const int linked = ::link(tree.at("/victim/file").c_str(), tree.at("/share/1/planted").c_str());
      ::unlink(tree.at("/share/1/planted").c_str());
    }
  for (int round = 0; round < rounds && tree.state("/victim/file") == victim; ++round)
    tree.apply(tree.action());
  ::kill(attacker, SIGKILL);
  ::waitpid(attacker, nullptr, 0);
  CHECK(tree.state("/victim/file") == victim);
}

} // namespace

TEST_CASE("SetTreeAccess under attack: a file of root is linked into the tree and out of it again, for 60 rounds") {
  attack_with_a_file_of_root(60);
}

TEST_CASE("SetTreeAccess under attack: the same for 400 rounds", "[long]") {
  attack_with_a_file_of_root(400);
}

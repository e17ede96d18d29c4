#include "sys/layers/layered_command.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/process/call.hpp"
#include "sys/worker/worker.hpp"

#include <filesystem>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// A store of `nobody` with an environment, and a directory of root beside it.
class Store {
 public:
  Store() {
    fs::permissions(m_top.path(), fs::perms(0755));
    m_top.write("store/.generations/env/0001/file", "as it was\n");
    m_top.write("store/.generations/env/0001/conda-meta/frozen", "");
    m_top.write("of_root/file", "secret\n");
    for (const auto& name : {"upper", "work", "said"})
      fs::create_directories(m_top / name);
    fs::create_symlink(".generations/env/0001", m_top / "store/env");
    fs::permissions(m_top / "of_root", fs::perms(0700));
    const auto user = test::nobody();
    for (const auto& name : {"store", "upper", "work", "said"}) {
      REQUIRE(::lchown((m_top / name).c_str(), user.uid, user.gid) == 0);
      for (const auto& one : fs::recursive_directory_iterator(m_top / name))
        REQUIRE(::lchown(one.path().c_str(), user.uid, user.gid) == 0);
    }
  }

  /// As `nobody`, who may mount: "0" for a command that ended well, or the error; then what it said.
  [[nodiscard]] std::string run(const std::string& shell, const User& user = test::nobody()) const {
    const auto made = make_user_namespace(user);
    if (!made)
      return made.error().message;
    const Layers layers{.parent = m_top / "store",
                        .name = "env",
                        .lower = m_top / "store/.generations/env/0001",
                        .upper = m_top / "upper",
                        .work = m_top / "work",
                        .removed = {},
                        .writable = {},
                        .user_namespace = made->get()};
    const TerminalCommand command{
        {"sh", "-c", "{ " + shell + "; } >" + (m_top / "said/out") + " 2>&1"}, {"PATH=/usr/bin:/bin"}, "/"};
    const auto said = test::as_user(user, [&]() -> std::string {
      const auto code = run_in_terminal(command, &layers);
      return code ? std::to_string(*code) : code.error().message;
    });
    return said + " " + m_top.read("said/out");
  }

  [[nodiscard]] const test::TemporaryDirectory& top() const { return m_top; }

 private:
  test::TemporaryDirectory m_top{"/var/tmp"}; // upper layers lie on a disk
};

/// Said, and nothing tested, where root may not have what the program needs, as in some containers.
bool is_possible() {
  const auto said = call(std::nullopt, 30s, []() -> Result<std::string> {
    return std::string(::geteuid() == 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? "yes" : "no");
  });
  const bool possible = said && *said == "yes";
  if (!possible)
    WARN("not root, or no user namespaces here: nothing is tested");
  return possible;
}

} // namespace

TEST_CASE("what a layered command changes lies in the upper directory, and nothing else has changed",
          "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  CHECK(store.run("cd " + store.top().path() + "/store/env && cat file && echo new >file && cat file") ==
        "0 as it was\nnew\n");
  CHECK(store.top().read("upper/file") == "new\n");
  CHECK(store.top().read("store/env/file") == "as it was\n");
}

TEST_CASE("attack: a layered command writes to the tree below by the path where it lies", "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  const auto generations = store.top() / "store/.generations/env";
  CHECK(store.run("cd " + generations +
                  " && for change in 'echo new >file' 'rm file' 'touch more' 'chmod 600 file'; do" +
                  " (cd 0001; eval \"$change\") 2>/dev/null || echo refused; done; echo x >beside && cat beside") ==
        "0 refused\nrefused\nrefused\nrefused\nx\n");
  CHECK(store.top().read("store/env/file") == "as it was\n");
}

TEST_CASE("attack: a layered command writes to the tree below by another mount of its file system",
          "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  const auto other = store.top() / "other";
  fs::create_directories(other);
  const auto said = call(std::nullopt, 60s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((store.top() / "store").c_str(), other.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return fail(errno_error(errno, other));
    return store.run("cd " + other + "/.generations/env && { (echo new >0001/file) 2>/dev/null || echo refused; } &&" +
                     " echo x >beside && cat beside");
  });
  REQUIRE(said);
  CHECK(*said == "0 refused\nx\n");
  CHECK(store.top().read("store/env/file") == "as it was\n");
}

TEST_CASE("a layered command of another user has no right of root's, and cannot get one", "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  const auto of_root = store.top() / "of_root/file";
  const auto setuid = store.top() / "id";
  fs::copy_file("/usr/bin/id", setuid);
  fs::permissions(setuid, fs::perms(04755));
  CHECK(store.run("cat " + of_root + " 2>/dev/null || echo refused; " + setuid + " -u") == "0 refused\n65534\n");
  CHECK(store.run("mount -t tmpfs none " + store.top().path() + " 2>/dev/null || echo refused") == "0 refused\n");
}

TEST_CASE("a layered command works in files of every group of its user", "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  REQUIRE(::chown((store.top() / "store/.generations/env/0001/file").c_str(), 65534, 12345) == 0);
  auto user = test::nobody();
  const auto change = "echo x >>" + store.top().path() + "/store/env/file && echo changed || echo refused";
  CHECK(store.run(change, user).find("changed") == std::string::npos);
  user.groups.push_back(12345);
  CHECK(store.run(change, user) == "0 changed\n");
}

TEST_CASE("attack: a layered command gives up a group that keeps it out of a file", "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  const auto denied = store.top() / "of_root/denied";
  store.top().write("of_root/denied", "secret\n");
  fs::permissions(store.top() / "of_root", fs::perms(0755));
  REQUIRE(::chown(denied.c_str(), 0, 12345) == 0);
  fs::permissions(denied, fs::perms(0604)); // for all but this group
  auto user = test::nobody();
  user.groups.push_back(12345);
  const auto drop = "/usr/bin/python3 -c \"import os\ntry: os.setgroups([])\nexcept OSError as e: print(e.strerror)\n"
                    "try: print(open('" +
                    denied + "').read())\nexcept OSError as e: print(e.strerror)\"";
  CHECK(store.run(drop, user) == "0 Operation not permitted\nPermission denied\n");
}

TEST_CASE("attack: the owner of a store exchanges the tree for a link to what only root may read",
          "[layered_command]") {
  if (!is_possible())
    return;
  const Store store;
  fs::rename(store.top() / "store/.generations/env/0001", store.top() / "store/.generations/env/away");
  fs::create_symlink(store.top() / "of_root", store.top() / "store/.generations/env/0001");
  const auto said = store.run("cat " + store.top().path() + "/store/env/file");
  CHECK(said.find("Permission denied") != std::string::npos);
  CHECK(said.find("secret") == std::string::npos);
}

// Directories that are made where others may write: nothing that was there before is taken for them.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/fs/exclusive.hpp"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/xattr.h>
#include <thread>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
namespace fs = std::filesystem;

namespace {

void put_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

struct ParentDirectory {
  test::TemporaryDirectory root;
  Fd above;

  explicit ParentDirectory(mode_t mode) {
    REQUIRE(::chmod(root.path().c_str(), mode) == 0);
    above.reset(::open(root.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  [[nodiscard]] std::string at(const std::string& name) const { return root.path() + "/" + name; }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat status{};
    return ::lstat(at(name).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
  }
  [[nodiscard]] std::size_t names() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root.path()), {}));
  }
  [[nodiscard]] int make(const std::string& name, mode_t wanted) const {
    const auto before = ::umask(0);
    const auto made = make_directory(above.get(), name, wanted);
    ::umask(before);
    if (!made)
      return made.error();
    struct stat by_name{}, by_descriptor{};
    CHECK(::lstat(at(name).c_str(), &by_name) == 0);
    CHECK((::fstat(made->get(), &by_descriptor) == 0 && by_name.st_ino == by_descriptor.st_ino));
    return 0;
  }
};

} // namespace

TEST_CASE("make_directory gives the mode, keeps what is inherited, and leaves nothing beside it") {
  const ParentDirectory parent(GENERATE(0755U, 0777U, 01777U, 02775U));
  const unsigned inherited = parent.mode(".") & 02000U;
  const auto mode = GENERATE(0755U, 02775U, 01777U, 0700U, 0555U);
  REQUIRE(parent.make("d", mode) == 0);
  CHECK(parent.mode("d") == (mode | inherited));
  CHECK(parent.make("d", mode) == EEXIST);
  CHECK(parent.names() == 1);
}

TEST_CASE("make_directory hands a default ACL on") {
  const ParentDirectory parent(0777);
  const auto acl = "setfacl -d -m u::rwx,g::rwx,o::---,m::rwx,u:4711:rwx " + parent.root.path() + " 2>/dev/null";
  if (::system(acl.c_str()) != 0) // no ACLs here
    return;
  REQUIRE(parent.make("aside", 0755) == 0);
  const auto length = [&](const std::string& name) {
    return ::getxattr(parent.at(name).c_str(), "system.posix_acl_default", nullptr, 0);
  };
  CHECK((length(".") > 0 && length("aside") == length(".")));
}

TEST_CASE("make_directory where something is, or what a killed run has left") {
  const ParentDirectory parent(0777);
  put_file(parent.at("file"), "");
  CHECK(parent.make("file", 0755) == EEXIST);
  fs::create_symlink("nowhere", parent.at("link"));
  CHECK(parent.make("link", 0755) == EEXIST);
  const auto left = temporary_name("d", "directory");
  SECTION("a directory of a killed run") {
    fs::create_directories(parent.at(left + "/" + left));
  }
  SECTION("a directory of somebody who took the name") {
    fs::create_directories(parent.at(left));
    put_file(parent.at(left + "/mine"), "");
  }
  SECTION("a file") {
    put_file(parent.at(left), "");
  }
  SECTION("a link") {
    fs::create_symlink("..", parent.at(left));
  }
  REQUIRE(parent.make("d", 0755) == 0);
  CHECK(parent.mode("d") == 0755);
  CHECK((!fs::exists(parent.at(left + "/" + left)) || fs::is_symlink(parent.at(left))));
}

TEST_CASE("what a run that was killed at its end has left goes away with the next") {
  const ParentDirectory parent(0777);
  REQUIRE(parent.make("d", 0755) == 0);
  fs::create_directory(parent.at(temporary_name("d", "directory")));
  clear_unfinished_directory(parent.above.get(), "d");
  CHECK(parent.names() == 1);
}

namespace {

/// A private directory is renamed to the name of a new one, or of the one that it is made in. It goes on until that
/// has happened at all.
void attack_new_directories(int rounds) {
  const ParentDirectory parent(0777);
  fs::create_directory(parent.at("secret"));
  put_file(parent.at("secret/private"), "x");
  REQUIRE(::chmod(parent.at("secret").c_str(), 0700) == 0);
  struct stat secret{};
  REQUIRE(::stat(parent.at("secret").c_str(), &secret) == 0);
  const auto names = {std::string("d"), temporary_name("d", "directory")};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> exchanged{0};
  std::vector<std::jthread> attackers;
  for (const auto& name : names)
    attackers.emplace_back([&, name] {
      while (!stop)
        if (::renameat2(AT_FDCWD, parent.at("secret").c_str(), AT_FDCWD, parent.at(name).c_str(), RENAME_EXCHANGE) ==
            0) {
          ++exchanged;
          while (!stop && ::renameat2(AT_FDCWD, parent.at(name).c_str(), AT_FDCWD, parent.at("secret").c_str(),
                                      RENAME_EXCHANGE) != 0)
            if (errno == ENOENT)
              ::renameat2(AT_FDCWD, parent.at(name).c_str(), AT_FDCWD, parent.at("secret").c_str(), RENAME_NOREPLACE);
        }
    });
  const auto before = ::umask(0);
  int opened = 0;
  for (int i = 0; i < rounds || exchanged == 0; ++i) {
    const auto made = make_directory(parent.above.get(), "d", 02775);
    struct stat status{};
    if (made && ::fstat(made->get(), &status) == 0 && status.st_ino == secret.st_ino)
      ++opened;
    ::unlinkat(parent.above.get(), "d", AT_REMOVEDIR); // the attackers may have put the other one there: not empty
  }
  ::umask(before);
  stop = true;
  attackers.clear();
  CHECK(opened == 0);
  bool found = false;
  for (const auto& entry : fs::recursive_directory_iterator(parent.root.path())) {
    struct stat status{};
    if (::lstat(entry.path().c_str(), &status) == 0 && status.st_ino == secret.st_ino) {
      found = true;
      CHECK((status.st_mode & 07777U) == 0700U);
      CHECK(fs::exists(entry.path() / "private"));
    }
  }
  CHECK(found);
}

} // namespace

TEST_CASE("attack: a private directory takes the name of a new one, 100 times") {
  attack_new_directories(100);
}

TEST_CASE("attack: a private directory takes the name of a new one, 3,000 times", "[long]") {
  attack_new_directories(3000);
}

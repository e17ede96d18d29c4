// What users try with the names on the way to a directory whose access root changes.
#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
namespace fs = std::filesystem;

namespace {

/// A root directory with /srv/share, of this process's user.
class Tree {
 public:
  Tree() {
    std::string name = fs::temp_directory_path() / "sharefs-access-XXXXXX";
    m_path = ::mkdtemp(name.data());
    fs::create_directories(at("/srv/share"));
    fs::permissions(at("/srv"), fs::perms(0755));
    fs::permissions(at("/srv/share"), fs::perms(0700));
  }
  ~Tree() { fs::remove_all(m_path); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  [[nodiscard]] std::string at(const std::string& path) const { return m_path + path; }

  /// Mode 0750 for /srv/share, planned for what is there now.
  [[nodiscard]] plan::SetAccess planned() const {
    struct stat status{};
    REQUIRE(::stat(at("/srv/share").c_str(), &status) == 0);
    const plan::Access before{status.st_uid, status.st_gid, 0700, ""};
    plan::SetAccess action{"/srv/share", before, before};
    action.after.mode = 0750;
    action.identity = {status.st_dev, status.st_ino};
    return action;
  }
  [[nodiscard]] std::string apply(const plan::SetAccess& action) const {
    test::ScriptedSystem system(m_path);
    const auto outcome = plan::apply_action(action, system);
    return outcome ? to_string(*outcome) : to_string(outcome.error().code);
  }
  [[nodiscard]] unsigned mode(const std::string& path) const {
    struct stat status{};
    REQUIRE(::stat(at(path).c_str(), &status) == 0);
    return status.st_mode & 07777U;
  }

 private:
  std::string m_path;
};

} // namespace

TEST_CASE("access of a directory whose path nobody else can change") {
  const Tree tree;
  CHECK(tree.apply(tree.planned()) == "done");
  CHECK(tree.mode("/srv/share") == 0750);
}

TEST_CASE("another directory that was renamed into place keeps its access") {
  const Tree tree;
  const auto action = tree.planned();
  fs::rename(tree.at("/srv/share"), tree.at("/srv/old"));
  fs::create_directory(tree.at("/srv/share"));
  fs::permissions(tree.at("/srv/share"), fs::perms(0700)); // no different to look at
  CHECK(tree.apply(action) == "conflict");
  CHECK(tree.mode("/srv/share") == 0700);
}

TEST_CASE("access is not changed below a directory in which others may replace names") {
  const Tree tree;
  const auto action = tree.planned();
  fs::permissions(tree.at("/srv"), fs::perms(0777));
  CHECK(tree.apply(action) == "permission");
  if (::geteuid() == 0) {
    fs::permissions(tree.at("/srv"), fs::perms(0755));
    REQUIRE(::chown(tree.at("/srv").c_str(), 54321, 54321) == 0);
    CHECK(tree.apply(action) == "permission");
  }
  CHECK(tree.mode("/srv/share") == 0700);
}

TEST_CASE("access is not changed through a link of a user") {
  const Tree tree;
  const auto action = tree.planned();
  fs::rename(tree.at("/srv"), tree.at("/real"));
  fs::create_directory_symlink("real", tree.at("/srv"));
  CHECK(tree.apply(action) == "done"); // a link of root, or of this process's user
  if (::geteuid() == 0) {
    REQUIRE(::lchown(tree.at("/srv").c_str(), 54321, 54321) == 0);
    auto other = action;
    std::swap(other.before.value(), other.after);
    CHECK(tree.apply(other) == "permission");
    CHECK(tree.mode("/real/share") == 0750);
  }
}

#include "base/path.hpp"
#include "given_tree.hpp"

#include <cstdlib>
#include <fstream>

using namespace sharefs;
using namespace sharefs::tree;
namespace fs = std::filesystem;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
}

/// A tree below `path`: a program, a file, a link, a file with two names, one with a name outside.
void make_sample(const std::string& path) {
  fs::create_directories(path + "/tree/bin/deep");
  for (const auto* name : {"/tree/bin/tool", "/tree/plain", "/tree/bin/deep/twice", "/outside"})
    std::ofstream(path + name) << name;
  ::chmod((path + "/tree/bin/tool").c_str(), 0700);
  ::chmod((path + "/tree/plain").c_str(), 0600);
  ::chmod((path + "/outside").c_str(), 0600);
  fs::create_hard_link(path + "/tree/bin/deep/twice", path + "/tree/twin");
  fs::create_hard_link(path + "/outside", path + "/tree/inside");
  fs::create_symlink("/etc/passwd", path + "/tree/link");
}

} // namespace

TEST_CASE("set_modes gives all in a tree the modes of one, and leaves what lies elsewhere, too") {
  const test::GivenTree given;
  make_sample(given.from);
  const Place place{.path = given.from + "/tree"};
  REQUIRE(set_modes(place, {.mode = 0555}, {}).value() == 6);
  CHECK(mode_of(given.from + "/tree") == 0555);
  CHECK(mode_of(given.from + "/tree/bin/deep") == 0555);
  CHECK(mode_of(given.from + "/tree/bin/tool") == 0555);
  CHECK(mode_of(given.from + "/tree/plain") == 0444);
  CHECK(mode_of(given.from + "/tree/twin") == 0444);
  CHECK(mode_of(given.from + "/outside") == 0600);
  CHECK(mode_of("/etc/passwd") == 0644);
  CHECK(set_modes(place, {.mode = 0555}, {}).value() == 0);
  CHECK(set_modes(place, {.mode = 02770}, {}).has_value());
  CHECK(mode_of(given.from + "/tree/bin") == 02770);
  CHECK(mode_of(given.from + "/tree/bin/tool") == 0770);
  CHECK(mode_of(given.from + "/tree/plain") == 0660);
}

TEST_CASE("what is protected from its owner is removed by its owner") {
  const test::GivenTree given;
  make_sample(given.from);
  ::chmod(parent_path(given.from).c_str(), 0755);
  ::chmod(given.from.c_str(), 0777);
  const Place place{.path = given.from + "/tree"};
  if (::geteuid() == 0)
    REQUIRE(std::system(("chown -R 1001:1001 " + place.path).c_str()) == 0);
  REQUIRE(set_modes(place, {.mode = 0555}, {}).has_value());
  Options options;
  if (::geteuid() == 0)
    options.as = sys::User{"alice", 1001, 1001, {1001}, "/"};
  const auto removed = remove(place, options);
  CHECK((removed ? "" : removed.error().message) == "");
  CHECK_FALSE(fs::exists(given.from + "/tree"));
}

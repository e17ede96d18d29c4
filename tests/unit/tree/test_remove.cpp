#include "given_tree.hpp"

#include <sys/mount.h>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

TEST_CASE("a tree is removed with all in it, and nothing else") {
  const GivenTree given;
  given.many(500);
  given.directory.write("victim/file", "precious");
  fs::create_directory_symlink("../victim", given.from + "/1/link");
  fs::create_symlink("../victim/file", given.from + "/file link");
  fs::create_hard_link(given.directory / "victim/file", given.from + "/second name");
  REQUIRE(::mkfifo((given.from + "/fifo").c_str(), 0600) == 0);
  std::string deep = given.from;
  for (int i = 0; i < 200; ++i)
    deep += "/d";
  fs::create_directories(deep);
  std::uint64_t seen = 0;
  const auto removed = tree::remove({given.from}, {}, [&](const tree::Progress& progress) { seen = progress.files; });
  REQUIRE(removed);
  CHECK(*removed == 500 + 50 + 4 + 200 + 1);
  CHECK(seen == *removed);
  CHECK_FALSE(fs::exists(given.from));
  CHECK(given.directory.read("victim/file") == "precious");
  CHECK(*tree::remove({given.from}, {}) == 0);
}

TEST_CASE("only the directory that is meant is removed") {
  const GivenTree given;
  given.many(3);
  const auto status = status_of(given.from);
  CHECK(tree::remove({.path = given.from, .device = status.st_dev, .inode = status.st_ino + 1}, {}).error().code ==
        ErrorCode::conflict);
  CHECK(tree::remove({given.from + "/0/1"}, {}).error().code == ErrorCode::conflict);
  fs::create_directory_symlink("from", given.directory / "link");
  CHECK(tree::remove({given.directory / "link"}, {}).error().code == ErrorCode::conflict);
  CHECK(tree::remove({"/"}, {}).error().code == ErrorCode::failed);
  CHECK(tree::remove({"from"}, {}).error().code == ErrorCode::failed);
  const auto file = status_of(given.from + "/0/1");
  CHECK(tree::remove({.path = given.from + "/0/1", .inode = status.st_ino}, {}).error().code == ErrorCode::conflict);
  CHECK(tree::exists({.path = given.from + "/0/1", .inode = file.st_ino}, {}).value());
  CHECK(given.names("from") == 4);
  CHECK(*tree::remove({.path = given.from + "/0/1", .inode = file.st_ino}, {}) == 1);
  CHECK(*tree::remove({.path = given.from + "/0/1", .inode = file.st_ino}, {}) == 0);
  CHECK(given.names("from") == 3);
  CHECK(tree::exists({.path = given.from, .inode = status.st_ino}, {}).value());
  CHECK(tree::remove({.path = given.from, .device = status.st_dev, .inode = status.st_ino}, {}));
  CHECK_FALSE(tree::exists({given.from}, {}).value());
}

TEST_CASE("what is mounted in a tree is neither removed, copied nor measured") {
  const GivenTree given;
  given.many(3);
  given.directory.write("victim/file", "precious");
  fs::create_directory(given.from + "/mounted");
  if (::mount((given.directory / "victim").c_str(), (given.from + "/mounted").c_str(), nullptr, MS_BIND, nullptr) != 0)
    return; // not allowed here
  const auto removed = tree::remove({given.from}, {});
  const auto copied = tree::copy({given.from}, {given.to}, {});
  const auto measured = tree::measure({given.from}, {});
  const auto of_itself = tree::remove({given.from + "/mounted"}, {});
  ::umount(((given.from + "/mounted").c_str()));
  CHECK(given.directory.read("victim/file") == "precious");
  CHECK(removed.error().message == given.from + "/mounted: something is mounted there, and it is left");
  CHECK(of_itself.error().code == ErrorCode::busy);
  CHECK(copied.error().code == ErrorCode::busy);
  CHECK_FALSE(fs::exists(given.to + "/mounted/file"));
  REQUIRE(measured);
}

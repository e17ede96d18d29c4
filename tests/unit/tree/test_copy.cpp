#include "given_tree.hpp"
#include "support/users.hpp"

#include <sys/acl.h>
#include <sys/file.h>
#include <sys/xattr.h>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

TEST_CASE("requirement 11: a copy keeps modes, times, links, holes and empty directories") {
  const GivenTree given;
  given.write("bin/python", "program");
  given.write("lib/a/module.py", "x = 1");
  given.write("empty file", "");
  given.write("a\nb\xff", "odd name");
  fs::create_directories(given.from + "/lib/empty/deeper");
  fs::create_symlink("python", given.from + "/bin/python3");
  fs::create_symlink("/nowhere/at/all", given.from + "/dangling");
  fs::create_directory_symlink("..", given.from + "/lib/up");
  fs::create_hard_link(given.from + "/lib/a/module.py", given.from + "/bin/same");
  fs::create_hard_link(given.from + "/lib/a/module.py", given.from + "/lib/same");
  ::chmod((given.from + "/bin/python").c_str(), 0755);
  ::chmod((given.from + "/lib/empty").c_str(), 02775);
  ::chmod((given.from + "/empty file").c_str(), 0400);
  set_time(given.from + "/lib/a/module.py", 1'000'000'000, 123'456'789);
  set_time(given.from + "/dangling", 1'100'000'000, 5);
  set_time(given.from + "/lib/empty", 900'000'000, 7);
  ::chmod((given.from + "/lib/a").c_str(), 0555);

  const auto report = given.copy();
  CHECK(given.differences().empty());
  CHECK(report.files == 4);
  CHECK(report.bytes == 7 + 5 + 0 + 8);
  CHECK(fs::read_symlink(given.to + "/dangling") == "/nowhere/at/all");
  CHECK(status_of(given.to + "/dangling").st_mtim.tv_nsec == 5);
  CHECK(status_of(given.to + "/lib/a/module.py").st_mtim.tv_nsec == 123'456'789);
  CHECK(status_of(given.to + "/lib/empty").st_mtim.tv_nsec == 7);
  CHECK(status_of(given.to + "/lib/empty").st_mode == (S_IFDIR | 02775U));
  CHECK(status_of(given.to + "/bin/same").st_ino == status_of(given.to + "/lib/a/module.py").st_ino);
  CHECK(status_of(given.to + "/bin/same").st_nlink == 3);
  CHECK(status_of(given.to).st_mode == status_of(given.from).st_mode);

  const auto again = given.copy();
  CHECK(again.files == 0);
  CHECK(given.differences().empty());
  ::chmod((given.from + "/lib/a").c_str(), 0755);
  ::chmod((given.to + "/lib/a").c_str(), 0755);
}

TEST_CASE("holes stay holes, and count as zeros") {
  const GivenTree given("/tmp");
  given.write("sparse", "begin");
  constexpr std::uint64_t k_size = 20U << 20U; // the first hole is longer than what is synced at once
  fs::resize_file(given.from + "/sparse", k_size);
  {
    std::fstream file(given.from + "/sparse", std::ios::in | std::ios::out);
    file.seekp(18U << 20U);
    file << "middle";
  }
  given.write("only hole", "");
  fs::resize_file(given.from + "/only hole", 3'000'001);
  CHECK(given.copy().files == 2);
  CHECK(given.differences().empty());
  CHECK(fs::file_size(given.to + "/sparse") == k_size);
  CHECK(status_of(given.to + "/sparse").st_blocks <= status_of(given.from + "/sparse").st_blocks + 8);
  CHECK(status_of(given.to + "/only hole").st_blocks <= 8);
}

TEST_CASE("a file of many blocks") {
  const GivenTree given;
  std::string content;
  for (int i = 0; content.size() < 20'000'000; ++i)
    content += std::string(10'000, static_cast<char>(i)) + std::to_string(i);
  given.write("large", content);
  CHECK(given.copy().bytes == content.size());
  CHECK(given.copied("large") == content);
}

TEST_CASE("extended attributes and ACLs come along, and what the destination would hand on does not") {
  const GivenTree given("/tmp");
  given.write("file", "x");
  given.write("plain", "x");
  ::chmod((given.from + "/plain").c_str(), 0640);
  const auto set_acl = [](const std::string& path, acl_type_t type, const char* text) {
    const auto acl = ::acl_from_text(text);
    const bool set = ::acl_set_file(path.c_str(), type, acl) == 0;
    ::acl_free(acl);
    return set;
  };
  const auto acl_of = [](const std::string& path, const char* name) {
    char value[256];
    const auto size = ::lgetxattr(path.c_str(), name, value, sizeof value);
    return size < 0 ? std::string() : std::string(value, static_cast<std::size_t>(size));
  };
  if (::setxattr((given.from + "/file").c_str(), "user.note", "kept", 4, 0) != 0 ||
      !set_acl(given.from + "/file", ACL_TYPE_ACCESS, "u::rw,u:1234:r,g::-,m::r,o::-"))
    return; // a file system without them
  fs::create_directory(given.from + "/below");
  REQUIRE(set_acl(given.from + "/below", ACL_TYPE_DEFAULT, "u::rwx,u:1234:rx,g::-,m::rx,o::-"));
  fs::create_directory(given.to);
  REQUIRE(set_acl(given.to, ACL_TYPE_DEFAULT, "u::rwx,u:4321:rwx,g::rwx,m::rwx,o::rx"));
  (void)given.copy();
  CHECK(acl_of(given.to + "/file", "user.note") == "kept");
  for (const char* name : {"system.posix_acl_access", "system.posix_acl_default"})
    for (const char* path : {"", "/file", "/plain", "/below"}) {
      CAPTURE(name, path);
      CHECK(acl_of(given.to + path, name) == acl_of(given.from + path, name));
    }
  CHECK(given.differences().empty());
}

TEST_CASE("programs with rights, and what is no file, are refused by name, and the rest is copied") {
  const GivenTree given("/tmp");
  given.write("a/program", "x");
  given.write("a/other", "x");
  ::chmod((given.from + "/a/program").c_str(), 04755);
  auto error = given.error();
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.message.starts_with(given.from + "/a/program: gives rights"));
  CHECK(given.copied("a/other") == "x");
  CHECK_FALSE(fs::exists(given.to + "/a/program"));
  ::chmod((given.from + "/a/program").c_str(), 02755);
  CHECK(given.error().message.starts_with(given.from + "/a/program: gives rights"));
  ::chmod((given.from + "/a/program").c_str(), 0755);
  REQUIRE(::mkfifo((given.from + "/a/fifo").c_str(), 0600) == 0);
  error = given.error();
  CHECK(error.message == given.from + "/a/fifo: is a FIFO, which is not copied");
  CHECK(given.names("to") == 3);
}

TEST_CASE("an earlier run's finished files are kept, its unfinished ones go, a changed original is copied") {
  const GivenTree given;
  given.many(50);
  CHECK(given.copy().files == 50);
  given.directory.write("to/1/.sharefs-copy-abcdefghijkl-3", "half");
  given.directory.write("from/2/.sharefs-copy-abcdefghijkl-4", "is the original's own");
  given.write("3/31", "another 31");
  fs::remove(given.to + "/4/44");
  {
    // Damaged: same size and time, another content.
    const auto before = status_of(given.to + "/4/45");
    given.directory.write("to/4/45", "CONTENT 45");
    set_time(given.to + "/4/45", before.st_mtim.tv_sec, before.st_mtim.tv_nsec);
  }
  const auto report = given.copy();
  CHECK(report.files == 4);
  CHECK(report.kept == 47);
  CHECK(given.differences().empty());
}

TEST_CASE("what the original does not have is an error, or removed when asked for") {
  const GivenTree given;
  given.many(3);
  (void)given.copy();
  given.directory.write("to/other/file", "whose?");
  given.directory.write("to/0/1x", "whose?");
  const auto error = given.error();
  CHECK(error.code == ErrorCode::conflict);
  CHECK(error.message.find(" is not in ") != std::string::npos);
  CHECK(given.copied("other/file") == "whose?");
  fs::remove(given.from + "/0/2");
  fs::create_directory(given.from + "/0/2"); // a directory where a file was
  tree::Options options;
  options.remove_others = true;
  (void)given.copy(options);
  CHECK(given.differences().empty());
  fs::remove(given.from + "/0/2");
  given.write("0/2", "a file again");
  (void)given.copy(options);
  CHECK(given.differences().empty());
}

TEST_CASE("what is to be copied is chosen, and may be refused") {
  const GivenTree given;
  given.many(30);
  given.write("0/secret", "x");
  tree::Options options;
  options.admit = [](const std::string& path, const struct stat&) -> Result<bool> {
    if (path == "0/secret")
      return fail(ErrorCode::permission, path + ": is secret");
    return path != "1" && path != "2/22";
  };
  CHECK(given.error(options).message == "0/secret: is secret");
  CHECK_FALSE(fs::exists(given.to + "/0/secret"));
  CHECK_FALSE(fs::exists(given.to + "/1"));
  CHECK_FALSE(fs::exists(given.to + "/2/22"));
  CHECK(given.copied("2/21") == "content 21");
}

TEST_CASE("a copy into itself, onto itself, or beside another one is refused") {
  const GivenTree given;
  given.many(3);
  CHECK(tree::copy({given.from}, {given.from + "/below"}, {}).error().message ==
        given.from + "/below: lies in what is to be copied");
  CHECK_FALSE(fs::exists(given.from + "/below"));
  CHECK(tree::copy({given.from}, {given.from}, {}).error().message == given.from + ": lies in what is to be copied");
  CHECK(tree::copy({given.from}, {given.from + "/0"}, {}).error().code == ErrorCode::failed);
  CHECK(given.names("from") == 4);
  CHECK(tree::copy({given.from}, {given.directory / "no/where"}, {}).error().code == ErrorCode::not_found);
  CHECK(tree::copy({given.directory / "none"}, {given.to}, {}).error().code == ErrorCode::not_found);
  CHECK_FALSE(fs::exists(given.to));
  given.directory.write("file", "x");
  CHECK(tree::copy({given.from}, {given.directory / "file"}, {}).error().code == ErrorCode::conflict);
  fs::create_directory(given.to);
  const int held = ::open(given.to.c_str(), O_RDONLY);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  CHECK(given.error().code == ErrorCode::busy);
  ::close(held);
  CHECK(given.copy().files == 3);
}

TEST_CASE("a copy by another user: owners as far as allowed, never wider") {
  if (::geteuid() != 0)
    return;
  const GivenTree given("/tmp");
  ::chmod(given.directory.path().c_str(), 0777);
  given.write("for the group", "x");
  given.write("for all", "x");
  given.write("closed", "x");
  ::chmod((given.from + "/for the group").c_str(), 0664);
  ::chmod((given.from + "/for all").c_str(), 0666);
  ::chmod((given.from + "/closed").c_str(), 0600);
  tree::Options options;
  options.as = nobody();
  CHECK(given.error(options).message == given.from + "/closed: Permission denied");
  CHECK((status_of(given.to + "/for the group").st_mode & 07777U) == 0644);
  CHECK((status_of(given.to + "/for all").st_mode & 07777U) == 0666);
  CHECK(status_of(given.to + "/for all").st_uid == nobody().uid);
  fs::remove(given.from + "/closed");
  const auto report = given.copy(options);
  CHECK(report.kept == 2);
  CHECK(report.files == 0);
  // As root all of it is given back, without copying it again.
  CHECK(given.copy().files == 0);
  CHECK(given.differences().empty());
  CHECK(status_of(given.to + "/for all").st_uid == 0);
}

TEST_CASE("a copy of the content only is the copier's own, and of now") {
  const GivenTree given;
  given.write("a/open", "x");
  given.write("a/program", "y");
  for (const auto* name : {"/a/open", "/a/program", "/a"}) {
    ::chmod((given.from + name).c_str(), 04777);
    set_time(given.from + name, 1, 1);
    if (::geteuid() == 0)
      REQUIRE(::chown((given.from + name).c_str(), nobody().uid, nobody().gid) == 0);
  }
  ::chmod((given.from + "/a/program").c_str(), 04755);
  CHECK(given.copy({.content_only = true}).files == 2);
  CHECK(given.copied("a/program") == "y");
  for (const auto* name : {"/a/open", "/a/program", "/a", ""}) {
    const auto status = status_of(given.to + name);
    CHECK(status.st_uid == ::geteuid());
    CHECK((status.st_mode & 07177U) == (S_ISDIR(status.st_mode) ? 0100U : 0U));
    CHECK(status.st_mtim.tv_sec > 1'000'000'000);
  }
}

TEST_CASE("the limit holds, and waiting for it is no standstill", "[waits]") {
  const GivenTree given;
  given.write("file", std::string(1'400'000, 'x'));
  tree::Options options;
  options.bytes_per_second = 1'000'000;
  options.deadline = std::chrono::seconds(1);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t seen = 0;
  const auto report =
      tree::copy({given.from}, {given.to}, options, [&](const tree::Progress& progress) { seen = progress.bytes; });
  REQUIRE(report);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(1320));
  CHECK(seen == 1'400'000);
}

TEST_CASE("attack: who reads the original for root enters the copy before it is whole") {
  if (::geteuid() != 0)
    return;
  const GivenTree given("/tmp");
  fs::permissions(given.directory.path(), fs::perms(0711));
  given.write("directory/program", "x");
  REQUIRE(::lchown(given.from.c_str(), 77, 78) == 0);
  SECTION("it is made") {}
  SECTION("it is there, and open to the reader") {
    fs::create_directory(given.to);
    REQUIRE(::lchown(given.to.c_str(), nobody().uid, nobody().gid) == 0);
  }
  tree::Options options;
  options.reader = nobody();
  options.admit = [&](const std::string& path, const struct stat&) -> Result<bool> {
    struct stat top{};
    if (::lstat(given.to.c_str(), &top) != 0 || top.st_uid != 0 || top.st_gid != 0 || (top.st_mode & 07777U) != 0700)
      return fail(ErrorCode::failed, path + ": the copy is not root's alone");
    return true;
  };
  CHECK(given.copy(options).files == 1);
  CHECK(given.differences().empty());
  CHECK(status_of(given.to).st_uid == 77);
  CHECK(status_of(given.to).st_gid == 78);
  CHECK(status_of(given.to).st_mode == status_of(given.from).st_mode);
}

TEST_CASE("directories that are nested without end are left, and no descriptor is taken for each") {
  const GivenTree given;
  given.write("file", "x");
  fs::create_directory(given.to);
  int at = ::open(given.to.c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 1200; ++depth) {
    REQUIRE(::mkdirat(at, "d", 0755) == 0);
    const int below = ::openat(at, "d", O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = below;
  }
  ::close(at);
  CHECK(given.error({.remove_others = true}).message.find("File name too long") != std::string::npos);
  CHECK(given.copied("file") == "x");
}

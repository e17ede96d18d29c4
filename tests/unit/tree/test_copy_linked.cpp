// Options::link_files: generations that share what does not change.
#include "given_tree.hpp"
#include "support/users.hpp"

#include <sys/mount.h>
#include <sys/xattr.h>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

namespace {

tree::Options linking() {
  tree::Options options;
  options.link_files = true;
  options.copy_instead = [](const std::string& path, const struct stat&) -> Result<bool> {
    return path.starts_with("conda-meta/");
  };
  return options;
}

} // namespace

TEST_CASE("requirement 3: a generation has the files of the one before, and copies of what is written in place") {
  const GivenTree given;
  given.write("bin/python", "program");
  given.write("lib/module.py", "x = 1");
  given.write("conda-meta/history", "==> one <==");
  fs::create_directories(given.from + "/empty");
  fs::create_symlink("python", given.from + "/bin/python3");
  fs::create_hard_link(given.from + "/lib/module.py", given.from + "/lib/same.py");
  fs::create_hard_link(given.from + "/lib/module.py", given.from + "/conda-meta/same.json");
  set_time(given.from + "/lib", 900'000'000, 7);
  ::chmod((given.from + "/lib/module.py").c_str(), 0444);

  const auto inode = [](const std::string& path) { return status_of(path).st_ino; };
  auto report = given.copy(linking());
  CHECK(given.differences().empty());
  CHECK(report.files == 2);
  CHECK(report.bytes == 11 + 5);
  for (const auto* name : {"/bin/python", "/lib/module.py", "/lib/same.py"})
    CHECK(inode(given.to + name) == inode(given.from + name));
  for (const auto* name : {"/conda-meta/history", "/conda-meta/same.json", "/bin/python3"})
    CHECK(inode(given.to + name) != inode(given.from + name));

  // Again: nothing to do; from what was cut off, replaced or changed since: it becomes the same.
  report = given.copy(linking());
  CHECK(report.files == 0);
  CHECK(report.kept == 6);
  fs::remove(given.to + "/lib/same.py");
  fs::remove(given.to + "/bin/python");
  given.directory.write("to/bin/python", "PROGRAM");
  given.directory.write("to/lib/.sharefs-copy-abcdefghijkl-3", "half");
  given.write("conda-meta/history", "==> two <==");
  report = given.copy(linking());
  CHECK(report.files == 1);
  for (const auto* name : {"/bin/python", "/lib/same.py"})
    CHECK(inode(given.to + name) == inode(given.from + name));
  CHECK(given.names("to") == given.names("from"));
  CHECK(given.differences().empty());

  // A plain copy shares nothing with the original, whatever was there before.
  // The copy of conda-meta is kept if the first thread comes to that name of the file first.
  const auto files = given.copy().files;
  CHECK((files == 1 || files == 2));
  for (const auto* name : {"/bin/python", "/lib/module.py", "/lib/same.py"})
    CHECK(inode(given.to + name) != inode(given.from + name));
  CHECK(inode(given.to + "/lib/module.py") == inode(given.to + "/lib/same.py"));
}

TEST_CASE("a file of another user, of which the kernel lets only that one make further names, is copied") {
  if (::geteuid() != 0)
    return;
  const GivenTree given("/tmp");
  given.write("a/own", "x");
  given.write("a/foreign", "y");
  fs::create_directory(given.to);
  for (const auto& path : {given.directory.path(), given.from, given.from + "/a", given.from + "/a/own", given.to})
    REQUIRE(::chown(path.c_str(), nobody().uid, nobody().gid) == 0);
  ::chmod((given.from + "/a/foreign").c_str(), 0644);
  const auto said = as_user(nobody(), [&] {
    const auto copied = tree::copy({given.from}, {given.to}, linking());
    return copied ? "copied " + std::to_string(copied->files) : copied.error().message;
  });
  CHECK(said == "copied 1");
  CHECK(given.directory.read("to/a/foreign") == "y");
  CHECK(status_of(given.to + "/a/own").st_ino == status_of(given.from + "/a/own").st_ino);
}

TEST_CASE("programs with rights are not linked either, and an answer may be an error") {
  const GivenTree given("/tmp");
  given.write("a/program", "x");
  given.write("a/other", "x");
  ::chmod((given.from + "/a/program").c_str(), 04755);
  CHECK(given.error(linking()).message.starts_with(given.from + "/a/program: gives rights"));
  CHECK_FALSE(fs::exists(given.to + "/a/program"));
  CHECK(fs::exists(given.to + "/a/other"));
  ::chmod((given.from + "/a/program").c_str(), 0755);
  // VFS_CAP_REVISION_2, cap_net_raw
  const char capability[]{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  if (::setxattr((given.from + "/a/program").c_str(), "security.capability", capability, sizeof capability, 0) == 0) {
    CHECK(given.error(linking()).message.starts_with(given.from + "/a/program: gives rights"));
    CHECK_FALSE(fs::exists(given.to + "/a/program"));
  }
  auto options = linking();
  options.copy_instead = [](const std::string& path, const struct stat&) -> Result<bool> {
    return fail(ErrorCode::failed, path + ": who knows");
  };
  CHECK(given.error(options).message.find(": who knows") != std::string::npos);
  CHECK(given.names("to") == 2);
}

TEST_CASE("links need one file system, which is said once and before anything is made") {
  const GivenTree given;
  given.many(30);
  fs::create_directory(given.directory / "other");
  if (::mount("none", (given.directory / "other").c_str(), "tmpfs", 0, "size=1m") != 0)
    return; // not allowed here
  const auto elsewhere = tree::copy({given.from}, {given.directory / "other/to"}, linking());
  const bool made = fs::exists(given.directory / "other/to");
  ::umount((given.directory / "other").c_str());
  REQUIRE(::mount(given.directory.path().c_str(), (given.directory / "other").c_str(), nullptr, MS_BIND, nullptr) == 0);
  const auto bound = tree::copy({given.from}, {given.directory / "other/to"}, linking());
  ::umount((given.directory / "other").c_str());
  for (const auto* report : {&elsewhere, &bound}) {
    REQUIRE_FALSE(*report);
    CHECK(report->error().message == given.directory / "other/to: is not on the mounted file system of " + given.from +
                                         ", and its files cannot be further names of the files there");
    CHECK(report->error().context.empty());
  }
  CHECK_FALSE(made);
  CHECK_FALSE(fs::exists(given.to));
}

TEST_CASE("attack: files are exchanged for links and programs while they are linked") {
  const GivenTree given;
  given.directory.write("victim", "secret");
  given.write("file", "x");
  given.write("program", "y");
  ::chmod((given.from + "/program").c_str(), 04755);
  fs::create_symlink("../victim", given.from + "/link");
  const auto attacker = beside([&] {
    for (const auto* name : {"/link", "/program"})
      ::renameat2(AT_FDCWD, (given.from + "/file").c_str(), AT_FDCWD, (given.from + name).c_str(), RENAME_EXCHANGE);
  });
  for (int round = 0; round < 8; ++round) {
    (void)tree::copy({given.from}, {given.to}, linking());
    for (const auto& one : fs::directory_iterator(given.to))
      if (!one.is_symlink()) {
        CHECK((status_of(one.path()).st_mode & 07777U) == (status_of(one.path()).st_mode & 0777U));
        CHECK(status_of(one.path()).st_ino != status_of(given.directory / "victim").st_ino);
      }
    (void)tree::remove({given.to}, {});
  }
  end(attacker);
}

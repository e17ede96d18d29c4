// Options::layer: what an overlay has noted is brought to a copy of what was below it.
#include "given_tree.hpp"

#include <cstring>
#include <map>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

namespace {

tree::Options layer() {
  tree::Options options;
  options.layer = true;
  return options;
}

bool mark(const std::string& path, const std::string& name, const std::string& value) {
  return ::setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) == 0;
}

/// A file system that can be an overlay's upper one, in a mount namespace of this process.
struct OwnMount {
  explicit OwnMount(std::string at) : path(std::move(at)) {
    fs::create_directory(path);
    mounted = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("none", path.c_str(), "tmpfs", 0, "size=20m") == 0;
  }
  ~OwnMount() {
    if (mounted)
      ::umount2(path.c_str(), MNT_DETACH);
  }
  OwnMount(const OwnMount&) = delete;
  OwnMount& operator=(const OwnMount&) = delete;
  std::string path;
  bool mounted = false;
};

} // namespace

TEST_CASE("a layer adds, replaces and takes away, and all else stays") {
  const bool by_user = GENERATE(false, true);
  const GivenTree given("/tmp");
  for (const auto* name : {"kept", "changed", "gone", "gone too", "directory", "d/kept", "d/gone/deep/file", "o/old/x",
                           "o/both/old", "plain", "was a directory/x"})
    given.directory.write("to/" + std::string(name), "below");
  fs::create_symlink("kept", given.to + "/link");
  fs::create_hard_link(given.to + "/changed", given.directory / "elsewhere");
  const auto elsewhere = status_of(given.directory / "elsewhere");
  const std::string prefix = by_user ? "user.overlay." : "trusted.overlay.";
  given.write("changed", "above");
  given.write("new/file", "above");
  given.write("directory/x", "above");
  given.write("link/x", "above");
  given.write("was a directory", "above");
  given.write("o/both/new", "above");
  given.write("d/new", "above");
  fs::create_symlink("nowhere", given.from + "/plain");
  given.directory.write("to/d/.sharefs-copy-abcdefghijkl-3", "half");
  ::chmod((given.from + "/d").c_str(), 0750);
  ::chmod((given.from + "/changed").c_str(), 0640);
  const auto whiteout = [&](const std::string& name) {
    return ::mknod((given.from + "/" + name).c_str(), S_IFCHR, ::makedev(0, 0)) == 0;
  };
  if (!mark(given.from + "/o", prefix + "opaque", "y") || !mark(given.from + "/changed", prefix + "origin", "abc") ||
      !whiteout("gone") || !whiteout("d/gone") || !whiteout("never there") || !whiteout("new/nothing"))
    return; // not allowed here
  mark(given.from + "/changed", "user.note", "kept");

  const auto report = given.copy(layer());
  CHECK(report.files == 7);
  const auto check = [&] {
    for (const auto* name : {"kept", "gone too", "d/kept"})
      CHECK(given.copied(name) == "below");
    for (const auto* name : {"changed", "new/file", "directory/x", "link/x", "was a directory", "o/both/new", "d/new"})
      CHECK(given.copied(name) == "above");
    CHECK(fs::read_symlink(given.to + "/plain") == "nowhere");
    CHECK(given.names("to") == 3 + 7 + 1 + 6); // files, a link, d, new, directory, link, o, o/both
    CHECK((status_of(given.to + "/d").st_mode & 07777U) == 0750);
    CHECK((status_of(given.to + "/changed").st_mode & 07777U) == 0640);
    char value[16];
    CHECK(::getxattr((given.to + "/changed").c_str(), "user.note", value, sizeof value) == 4);
    CHECK(::getxattr((given.to + "/changed").c_str(), (prefix + "origin").c_str(), value, sizeof value) < 0);
    CHECK(::getxattr((given.to + "/o").c_str(), (prefix + "opaque").c_str(), value, sizeof value) < 0);
    // What has a name elsewhere is not changed there.
    CHECK(given.directory.read("elsewhere") == "below");
    CHECK(status_of(given.directory / "elsewhere").st_mode == elsewhere.st_mode);
  };
  check();
  (void)given.copy(layer()); // once more: the same
  check();
}

TEST_CASE("a file of a layer that differs in its owner only is another file") {
  const GivenTree given;
  given.write("file", "x");
  (void)given.copy();
  fs::create_hard_link(given.to + "/file", given.directory / "elsewhere");
  if (::geteuid() != 0)
    return;
  REQUIRE(::chown((given.from + "/file").c_str(), 1234, 1234) == 0);
  (void)given.copy(layer());
  CHECK(status_of(given.to + "/file").st_uid == 1234);
  CHECK(status_of(given.directory / "elsewhere").st_uid == 0);
}

TEST_CASE("without a layer its marks are nothing else than attributes") {
  const GivenTree given("/tmp");
  given.write("other", "");
  if (!mark(given.from + "/other", "user.overlay.origin", ""))
    return; // a file system without them
  (void)given.copy();
  char value[16];
  CHECK(::getxattr((given.to + "/other").c_str(), "user.overlay.origin", value, sizeof value) == 0);
  if (::mknod((given.from + "/whiteout").c_str(), S_IFCHR, ::makedev(0, 0)) == 0)
    CHECK(given.error().message == given.from + "/whiteout: is a device, which is not copied");
}

TEST_CASE("requirement 6: what a real overlay shows is what its layer makes of a linked generation") {
  const std::string option = GENERATE("", ",userxattr");
  const GivenTree given;
  const OwnMount own(given.directory / "own");
  if (!own.mounted) {
    WARN("skipped: no mount namespace is allowed here");
    return;
  }
  const auto at = [&](const std::string& name) { return own.path + "/" + name; };
  for (const auto* name : {"lower", "upper", "work", "merged"})
    fs::create_directory(at(name));
  for (const auto* name : {"bin/python", "lib/a/one", "lib/a/two", "lib/b/one", "lib/c/one", "lib/c/two", "turned",
                           "renamed", "conda-meta/history", "mode only"})
    given.directory.write("own/lower/" + std::string(name), name);
  fs::create_symlink("bin", at("lower/link"));
  fs::create_hard_link(at("lower/lib/a/one"), at("lower/lib/a/same"));
  const auto options = "lowerdir=" + at("lower") + ",upperdir=" + at("upper") + ",workdir=" + at("work") + option;
  if (::mount("overlay", at("merged").c_str(), "overlay", 0, options.c_str()) != 0) {
    WARN("skipped: no overlay can be mounted here: " << std::strerror(errno));
    return;
  }

  const auto before = contents_of(at("lower"));
  given.directory.write("own/merged/lib/a/two", "changed");
  given.directory.write("own/merged/lib/new/file", "new");
  fs::create_hard_link(at("merged/lib/new/file"), at("merged/lib/new/same"));
  fs::remove(at("merged/bin/python"));
  fs::remove_all(at("merged/lib/b"));
  fs::remove_all(at("merged/lib/c"));
  given.directory.write("own/merged/lib/c/three", "again");
  fs::remove(at("merged/turned"));
  given.directory.write("own/merged/turned/file", "a directory");
  fs::remove(at("merged/link"));
  given.directory.write("own/merged/link", "a file");
  fs::rename(at("merged/renamed"), at("merged/lib/renamed"));
  ::chmod(at("merged/mode only").c_str(), 0600);
  {
    std::ofstream(at("merged/conda-meta/history"), std::ios::app) << "more";
  }

  tree::Options linked;
  linked.link_files = true;
  REQUIRE(tree::copy({at("lower")}, {at("next")}, linked));
  const auto report = tree::copy({at("upper")}, {at("next")}, layer());
  CAPTURE(report ? "" : report.error().message);
  REQUIRE(report);
  CHECK(differences(at("merged"), at("next")) == std::vector<std::string>{});
  CHECK(contents_of(at("lower")) == before); // other generations stay as they are
  CHECK(status_of(at("next/lib/a/same")).st_ino == status_of(at("lower/lib/a/same")).st_ino);
}

TEST_CASE("nothing is done about directories of a layer that are as they were") {
  const GivenTree given("/tmp");
  const auto copy = [&](const std::string& name) { return given.to + "/" + name; };
  for (const auto* name : {"same/deep/er/file", "mode/file", "time/file", "file/inside", "new/file", "closed/replaced"})
    given.directory.write("to/" + std::string(name), "below");
  for (const auto* name : {"same/deep/er", "mode", "time", "file", "new/directory", "closed/replaced"})
    fs::create_directories(given.from + "/" + name);
  given.write("file/other", "far above");
  const auto like = [&](const std::string& name, mode_t mode) { // what overlayfs has copied up
    const auto status = status_of(copy(name));
    const std::array<timespec, 2> times{status.st_atim, status.st_mtim};
    ::chmod((given.from + "/" + name).c_str(), mode | S_IWUSR);
    ::utimensat(AT_FDCWD, (given.from + "/" + name).c_str(), times.data(), 0);
    ::chmod(copy(name).c_str(), mode);
  };
  for (const auto* name : {"same/deep/er", "same/deep", "same", "time", "file", "new", "closed"})
    like(name, 0555);
  like("mode", 0555);
  ::chmod((given.from + "/mode").c_str(), 0711);
  const std::array<timespec, 2> old{timespec{1000, 0}, timespec{1000, 5}};
  ::utimensat(AT_FDCWD, (given.from + "/time").c_str(), old.data(), 0);
  std::map<std::string, struct stat> before;
  for (const auto* name : {"same/deep/er", "same/deep", "same", "mode", "time", "file"})
    before[name] = status_of(copy(name));

  auto options = layer();
  options.removed_mode_bits = 0222;
  const auto report = given.copy(options);
  CHECK(report.files == 1);
  for (const auto& [name, was] : before) {
    INFO(name);
    const auto now = status_of(copy(name));
    const bool untouched = now.st_ctim.tv_sec == was.st_ctim.tv_sec && now.st_ctim.tv_nsec == was.st_ctim.tv_nsec;
    CHECK(untouched == name.starts_with("same"));
    CHECK((now.st_mode & 07777U) == (name == "mode" ? 0511U : 0555U));
    CHECK(now.st_mtim.tv_sec == (name == "time" ? 1000 : status_of(given.from + "/" + name).st_mtim.tv_sec));
  }
  CHECK(fs::exists(copy("file/inside")));
  CHECK(fs::exists(copy("file/other")));
  CHECK(fs::is_directory(copy("new/directory")));
  CHECK(fs::is_directory(copy("closed/replaced")));
  CHECK((status_of(copy("new")).st_mode & 07777U) == 0555U);
}

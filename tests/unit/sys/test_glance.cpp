#include "sys/fs/glance.hpp"

#include "base/path.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/fs/resolve.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/real_system.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::sys;
namespace fs = std::filesystem;

namespace {

bool was_read_after_its_change(const struct stat& status) {
  return std::pair(status.st_atim.tv_sec, status.st_atim.tv_nsec) >
         std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

/// So that the kernel remembers what is there, and what is not. A link that was just made gets its time of access
/// written at every use until the clock has gone on (mount(8), relatime): that is no matter of the name cache alone.
void look_up_once(const std::string& path) {
  struct stat status{};
  for (int tries = 0; tries < 2000; ++tries) {
    (void)::stat(path.c_str(), &status);
    if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode) || was_read_after_its_change(status))
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (path != "/")
    look_up_once(parent_path(path));
}

/// A directory with a file, links to both, and a link that leads nowhere.
struct Tree : test::TemporaryDirectory {
  Tree() {
    write("d/file", "x");
    fs::create_symlink("d", *this / "link");
    fs::create_symlink(*this / "d/file", *this / "file-link");
    fs::create_symlink(*this / "nowhere", *this / "dangling");
  }
};

MountTable mounts_of_this_host() {
  return MountWatch().current().value();
}

} // namespace

TEST_CASE("glance: a local path is told without the mount table, as the resolver tells it with it") {
  const Tree tree;
  const MountTable mounts = mounts_of_this_host();
  RealSystem system;
  Resolver resolver = make_resolver(system, mounts, std::chrono::seconds(5));
  resolver.insist();
  Glance glance = Glance::of_this_host();
  for (const std::string& path :
       {std::string("/"), tree.path(), tree / "d/file", tree / "link", tree / "link/file", tree / "file-link",
        tree / "no", tree / "link/no/such/path", tree / "./d//file/", std::string("/proc/self/status")}) {
    CAPTURE(path);
    look_up_once(normalize_path(path));
    const auto place = glance.at(path);
    REQUIRE(place);
    if (!path.starts_with("/proc/self")) // a link to another place for each process
      CHECK(*place == resolver.resolve(path));
    CHECK_FALSE(place->shared);
  }
}

TEST_CASE("glance: what is not certain is left to the mount table") {
  const Tree tree;
  Glance glance = Glance::of_this_host();
  for (const std::string& path :
       {tree / "dangling", tree / "dangling/x", tree / "d/../d", tree / "d/..", tree / "d/file/x",
        std::string("relative"), std::string(), tree / std::string(1, '\0')}) {
    CAPTURE(path);
    if (path.starts_with('/'))
      look_up_once(normalize_path(path.substr(0, path.find('\0'))));
    CHECK_FALSE(glance.at(path));
  }
  CHECK_FALSE(Glance().at("/"));
}

TEST_CASE("glance: a path on a mount that may hang, or that is not in the table, is left to the mount table") {
  const Tree tree;
  look_up_once(tree / "no");
  std::vector<MountEntry> entries = mounts_of_this_host().entries();
  CHECK(Glance(MountTable(entries)).at(tree.path()));
  const std::string type = GENERATE(as<std::string>(), "nfs4", "fuse", "autofs", "lustre");
  for (MountEntry& entry : entries)
    entry.fs_type = type;
  CHECK_FALSE(Glance(MountTable(entries)).at(tree.path()));
  CHECK_FALSE(Glance(MountTable(entries)).at(tree / "no"));
  CHECK_FALSE(Glance(MountTable()).at(tree.path()));
}

TEST_CASE("glance: under another root there is none") {
  const Tree tree;
  CHECK_FALSE(RealSystem(tree.path()).glance().at("/"));
  CHECK(RealSystem().glance().at("/"));
}

#include "support/catch.hpp"
#include "sys/fs/resolve.hpp"

#include <map>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

MountTable table(const std::vector<std::pair<std::string, std::string>>& mounts) {
  std::vector<MountEntry> entries;
  for (const auto& [target, type] : mounts) {
    MountEntry entry;
    entry.id = static_cast<int>(entries.size()) + 1;
    entry.parent = entries.empty() ? 0 : 1;
    entry.target = target;
    entry.fs_type = type;
    entries.push_back(entry);
  }
  return MountTable(std::move(entries));
}

} // namespace

TEST_CASE("resolve: nothing below a shared mount is looked at in process") {
  const MountTable mounts = table({{"/", "ext4"}, {"/share", "nfs4"}});
  std::vector<std::string> local, remote;
  const std::map<std::string, std::string> links = {{"/l", "share/d"}, {"/share/d/out", "/scratch"}};
  const auto see = [&](const std::string& path) {
    const auto link = links.find(path);
    return link == links.end() ? Seen{PathKind::directory, ""} : Seen{PathKind::symlink, link->second};
  };
  Resolver resolver(
      mounts,
      [&](const std::string& path) {
        local.push_back(path);
        return see(path);
      },
      [&](const std::vector<std::string>& paths) {
        std::vector<Seen> seen;
        for (const std::string& path : paths) {
          remote.push_back(path);
          seen.push_back(see(path));
        }
        return seen;
      });
  const Place inside = resolver.resolve("/l/x");
  CHECK(inside.shared);
  CHECK(inside.resolved == "/share/d/x");
  CHECK(inside.mount == "/share");
  const Place outside = resolver.resolve("/l/out/y");
  CHECK_FALSE(outside.shared);
  CHECK(outside.resolved == "/scratch/y");
  for (const std::string& path : local)
    CHECK_FALSE(path.starts_with("/share"));
  for (const std::string& path : remote)
    CHECK(path.starts_with("/share/"));
}

TEST_CASE("resolve: a server that does not answer counts as shared, and a loop of links ends") {
  const MountTable mounts = table({{"/", "ext4"}, {"/dead", "nfs"}, {"/auto", "autofs"}});
  int asked = 0;
  Resolver resolver(
      mounts,
      [](const std::string& path) {
        return path == "/loop" ? Seen{PathKind::symlink, "/loop"} : Seen{PathKind::missing, ""};
      },
      [&](const std::vector<std::string>&) {
        ++asked;
        return std::vector<Seen>{};
      });
  const Place dead = resolver.resolve("/dead/a/../b");
  CHECK(dead.shared);
  CHECK_FALSE(dead.doubt.empty());
  CHECK(asked == 1);
  CHECK(resolver.resolve("/auto/x").shared);
  CHECK(asked == 1); // an automount point is never triggered
  CHECK(resolver.resolve("/loop/x").shared);
  CHECK(resolver.resolve("/not/yet").kind == PathKind::missing);
  CHECK_FALSE(resolver.resolve("/not/yet").shared);
}

TEST_CASE(
    "resolve: a FUSE file system that is not shared is looked at by a child, too, and stays local without an answer") {
  const MountTable mounts = table({{"/", "ext4"}, {"/share", "nfs4"}, {"/fuse", "fuse.encfs"}});
  std::vector<std::string> remote;
  std::vector<Seen> answers = GENERATE(std::vector<Seen>{{PathKind::directory, ""}}, std::vector<Seen>{});
  Resolver resolver(
      mounts,
      [](const std::string& path) {
        CHECK_FALSE(path.starts_with("/fuse/"));
        return Seen{PathKind::directory, ""};
      },
      [&](const std::vector<std::string>& paths) {
        remote.insert(remote.end(), paths.begin(), paths.end());
        return answers;
      });
  const Place place = resolver.resolve("/fuse/x");
  CHECK(remote == std::vector<std::string>{"/fuse/x"});
  CHECK_FALSE(place.shared);
  CHECK(place.doubt.empty());
  CHECK(place.kind == (answers.empty() ? PathKind::unknown : PathKind::directory));
}

#include "cli/commands/init/facts.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cli;

namespace {

sys::MountEntry mount(int id, int parent, std::string type, std::string source, std::string target) {
  sys::MountEntry entry;
  entry.id = id;
  entry.parent = parent;
  entry.fs_type = std::move(type);
  entry.source = std::move(source);
  entry.target = std::move(target);
  return entry;
}

} // namespace

TEST_CASE("mounts that a person made", "[init]") {
  const sys::MountTable table({
      mount(1, 0, "ext4", "/dev/sda", "/"),
      mount(2, 1, "nfs4", "storage1:/mnt", "/data"),
      mount(3, 2, "nfs4", "storage1:/mnt/disk2", "/data/disk2"), // the kernel crossed into it
      mount(4, 2, "nfs4", "storage1:/mnt/disk3", "/data/third"), // somebody mounted it there
      mount(5, 1, "nfs", "10.0.0.1:/", "/all"),
      mount(6, 5, "nfs", "10.0.0.1:/sub", "/all/sub"), // crossed, from the root of the server
      mount(7, 1, "nfs4", "storage1:/pods", "/var/lib/kubelet/pods/1/volumes/x"),
      mount(8, 1, "nfs4", "old:/x", "/over"),
      mount(9, 8, "nfs4", "new:/x", "/over"), // hides the one before
      mount(10, 1, "cifs", "//win/x", "/win"),
  });
  std::vector<std::string> sources;
  for (const auto& entry : own_nfs_mounts(table))
    sources.push_back(entry.source);
  CHECK(sources == std::vector<std::string>{"storage1:/mnt", "storage1:/mnt/disk3", "10.0.0.1:/", "new:/x"});
}

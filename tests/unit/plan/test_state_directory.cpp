#include "fake_system.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"

#include <cstdlib>

using namespace sharefs;
using namespace sharefs::plan;

namespace {

struct Variable {
  explicit Variable(const char* value) {
    if (value != nullptr)
      ::setenv("XDG_STATE_HOME", value, 1);
    else
      ::unsetenv("XDG_STATE_HOME");
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv("XDG_STATE_HOME"); }
};

sys::MountTable table(const std::string& target, const std::string& type) {
  auto root = test::FakeSystem::entry("/dev/vda", "/", "ext4");
  root.id = 1;
  auto mount = test::FakeSystem::entry("s:/x", target, type);
  mount.id = 2;
  mount.parent = 1;
  return sys::MountTable({root, mount});
}

} // namespace

TEST_CASE("state lies on this host's own disks") {
  struct Row {
    uid_t uid;
    const char* home;
    const char* xdg;
    const char* mounted_at;
    const char* fs_type;
    const char* expected;
  };
  const auto row = GENERATE(Row{0, "/root", "/x", "/x", "nfs4", "/var/lib/sharefs"},
                            Row{1001, "/homes/alice", nullptr, "/data", "nfs4", "/homes/alice/.local/state/sharefs"},
                            Row{1001, "/homes/alice", nullptr, "/homes", "nfs4", "/var/tmp/sharefs-1001"},
                            Row{1001, "/homes/alice", nullptr, "/homes/alice", "lustre", "/var/tmp/sharefs-1001"},
                            Row{1001, "/homes/alice", nullptr, "/homes", "autofs", "/var/tmp/sharefs-1001"},
                            Row{1001, "/homes/alice", nullptr, "/homes", "ext4", "/homes/alice/.local/state/sharefs"},
                            Row{1001, "/homes/alice", "/scratch/state", "/homes", "nfs4", "/scratch/state/sharefs"},
                            Row{1001, "/homes/alice", "relative", "/data", "nfs4", "/homes/alice/.local/state/sharefs"},
                            Row{1001, "", nullptr, "/data", "nfs4", "/var/tmp/sharefs-1001"});
  const Variable variable(row.xdg);
  sys::Identity identity;
  identity.uid = row.uid;
  identity.home = row.home;
  CHECK(state_directory(identity, table(row.mounted_at, row.fs_type)) == row.expected);
}

TEST_CASE("a home that is a link to a share counts as shared") {
  const Variable variable(nullptr);
  test::TemporaryRoot local;
  std::filesystem::create_symlink("/data/homes/alice", local.path() + "/alice");
  sys::Identity identity;
  identity.uid = 1001;
  identity.home = local.path() + "/alice";
  CHECK(state_directory(identity, table("/data", "nfs4")) == "/var/tmp/sharefs-1001");
}

#include "journal_entries.hpp"
#include "plan/host_lock.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

#include <cstdlib>
#include <sys/wait.h>

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
  test::Machine machine;
  machine.add_mount("s:/x", target, type);
  return machine.mounts;
}

std::string directory_of(const sys::Files& files, uid_t uid) {
  sys::Identity identity;
  identity.uid = uid;
  return state_directory(files, identity, table("/data", "nfs4"));
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
                            Row{1001, "/nowhere", nullptr, "/data", "nfs4", "/var/tmp/sharefs-1001"},
                            Row{1001, "", nullptr, "/data", "nfs4", "/var/tmp/sharefs-1001"});
  const Variable variable(row.xdg);
  sys::Identity identity;
  identity.uid = row.uid;
  identity.home = row.home;
  const test::TemporaryRoot root;
  std::filesystem::create_directories(root.path() + "/homes/alice");
  CHECK(state_directory(sys::Files(root.path()), identity, table(row.mounted_at, row.fs_type)) == row.expected);
}

TEST_CASE("a home that is a link to a share counts as shared") {
  const Variable variable(nullptr);
  test::TemporaryRoot local;
  std::filesystem::create_symlink("/data/homes/alice", local.path() + "/alice");
  sys::Identity identity;
  identity.uid = 1001;
  identity.home = local.path() + "/alice";
  const test::TemporaryRoot root;
  CHECK(state_directory(sys::Files(root.path()), identity, table("/data", "nfs4")) == "/var/tmp/sharefs-1001");
}

TEST_CASE("a name in /var/tmp that somebody else has taken is not used, and what is used instead is found again") {
  if (::geteuid() != 0)
    return; // directories of several users
  const test::TemporaryRoot root;
  const auto var_tmp = root.path() + "/var/tmp/";
  std::filesystem::create_directories(var_tmp);
  const uid_t bob = 54322;
  const int attack = GENERATE(0, 1, 2, 3, 4);
  test::put(var_tmp + "secret/journal/1/plan.json", "{}");
  REQUIRE(::chown((var_tmp + "secret").c_str(), 54321, 0) == 0);
  ::chmod((var_tmp + "secret").c_str(), 0700);
  const auto squatted = var_tmp + "sharefs-54321";
  switch (attack) {
  case 0:
    std::filesystem::create_directory(squatted);
    REQUIRE(::chown(squatted.c_str(), bob, bob) == 0);
    break;
  case 1: // to a directory of alice's own
    std::filesystem::create_directory_symlink("secret", squatted);
    REQUIRE(::lchown(squatted.c_str(), bob, bob) == 0);
    break;
  case 2:
    test::put(squatted, "");
    REQUIRE(::chown(squatted.c_str(), bob, bob) == 0);
    break;
  case 3:
    std::filesystem::create_symlink("nowhere", squatted);
    REQUIRE(::lchown(squatted.c_str(), bob, bob) == 0);
    break;
  default: // the other names, too
    for (const auto& name : {squatted, squatted + "-0", squatted + "-00000000"}) {
      std::filesystem::create_directory(name);
      REQUIRE(::chown(name.c_str(), bob, bob) == 0);
    }
  }
  const pid_t alice = ::fork();
  if (alice == 0) {
    ::chmod(var_tmp.c_str(), 01777);
    if (::setgid(54321) != 0 || ::setuid(54321) != 0)
      ::_exit(1);
    const sys::Files files(root.path());
    const auto chosen = directory_of(files, 54321);
    if (!chosen.starts_with("/var/tmp/sharefs-54321-"))
      ::_exit(2);
    test::ScriptedSystem system(root.path(), test::willing_machine());
    if (!HostLock::acquire(files, chosen, {"sharefs", "alice"}, std::chrono::milliseconds(0)))
      ::_exit(3);
    if (directory_of(files, 54321) != chosen)
      ::_exit(4);
    ::_exit(test::entries_of(Journal(files, chosen))->empty() ? 0 : 5);
  }
  int status = 0;
  ::waitpid(alice, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
}

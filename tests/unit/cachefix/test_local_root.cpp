#include "base/path.hpp"
#include "cachefix/store/local_root.hpp"
#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

constexpr uid_t k_bob = 1001;

/// Disks below a root of our own, /nfs a shared one; how much is free is the test's.
struct Disks {
  test::TemporaryDirectory directory;
  test::ScriptedSystem system{directory.path()};
  std::map<std::string, sys::Space> spaces;
  std::string not_writable; ///< a directory

  Disks() {
    system.machine.identity.user = "alice";
    system.machine.identity.uid = ::geteuid();
    system.machine.add_mount("s:/x", "/nfs", "nfs4");
    system.machine.on_entry = [this](const sys::EntryQuery& query, const auto&) -> std::optional<sys::Entry> {
      if (!query.space)
        return std::nullopt;
      sys::Entry entry;
      entry.path = entry.resolved = query.path;
      entry.kind = sys::EntryKind::directory;
      entry.writable = query.path != not_writable;
      entry.space = sys::Space{{}, 0, 9'000'000'000, 2'000'000, 1'000'000};
      for (const auto& [path, space] : spaces)
        if (is_under(query.path, path))
          entry.space = space;
      return entry;
    };
    make("/var/tmp", 01777);
  }
  void make(const std::string& path, mode_t mode = 0755, uid_t owner = ::geteuid()) const {
    const std::string real = directory.path() + path;
    fs::create_directories(real);
    REQUIRE(::chmod(real.c_str(), mode) == 0);
    REQUIRE(::chown(real.c_str(), owner, owner) == 0);
  }
  void disk(const std::string& path, std::uint64_t free_bytes, std::uint64_t free_files = 1'000'000) {
    make(path);
    spaces[path] = sys::Space{{}, 0, free_bytes, 2'000'000, free_files};
  }
  void mount_noexec(const std::string& path) {
    system.machine.add_mount("/dev/" + base_name(path), path, "xfs");
    auto table = system.machine.mounts.entries();
    table.back().options = "rw,nosuid,nodev,noexec,relatime";
    system.machine.mounts = sys::MountTable(std::move(table));
  }
  LocalRoot find(const std::vector<std::string>& directories, const std::vector<std::string>& environment = {}) {
    return find_local_root(system, {directories, 1ULL << 30U, environment}, system.machine.identity);
  }
};

} // namespace

TEST_CASE("requirement 9: the first of the directories that are not shared and have room is taken") {
  Disks disks;
  disks.disk("/a", 20'000);
  disks.disk("/b", 9'000'000'000);
  disks.disk("/nfs", 99'000'000'000);
  disks.disk("/c", 9'000'000'000);
  CHECK(disks.find({"/a", "/b", "/nfs", "/c"}) == LocalRoot{"/b/alice", "", ""});
  CHECK(disks.find({"/c", "/b"}).directory == "/c/alice");
}

TEST_CASE("each user may be root in a user namespace") {
  Disks disks;
  disks.disk("/a", 9'000'000'000);
  auto& self = disks.system.machine.identity;
  self.user = "root";
  CHECK(disks.find({"/a"}).directory == "/a/root");
  if (self.uid == 0) {
    self.outside_uid = k_bob;
    CHECK(disks.find({"/a"}).directory == "/a/uid-1001");
  }
}

TEST_CASE("noexec: what is compiled is mapped from its cache, so another place is found for it, and data stay") {
  Disks disks;
  disks.disk("/scratch", 9'000'000'000);
  disks.disk("/disk", 2'000'000'000);
  disks.mount_noexec("/scratch");
  const LocalRoot root = disks.find({"/scratch", "/disk"});
  CHECK(root.place(false) == "/scratch/alice");
  CHECK(root.place(true) == "/disk/alice");
  CHECK(diagnose(root, Severity::error).empty());
  const LocalRoot other = disks.find({"/scratch"});
  CHECK(other.place(true) == "/var/tmp/sharefs-alice");
  const auto said = diagnose_code(other, Severity::error);
  REQUIRE(said.size() == 1);
  CHECK(said[0].code == "SF414");
  CHECK(said[0].message == "holds compiled caches, because /scratch/alice lies on /scratch, which is mounted noexec");
  CHECK(disks.find({"/disk", "/scratch"}) == LocalRoot{"/disk/alice", "", ""});
  disks.mount_noexec("/var/tmp");
  const LocalRoot none = disks.find({"/scratch"});
  CHECK(none.place(true).empty());
  CHECK(none.place(false) == "/scratch/alice");
  const auto nowhere = diagnose_code(none, Severity::warning);
  REQUIRE(nowhere.size() == 1);
  CHECK(nowhere[0].code == "SF405");
  CHECK(nowhere[0].message == "no directory on this host's own disks can hold compiled caches: " + none.noexec);
  CHECK(nowhere[0].hint == "set caches.local in sharefs.yaml to a directory that is not mounted noexec");
}

TEST_CASE("requirement 9: too few bytes or inodes are no place for a cache") {
  Disks disks;
  disks.disk("/small", 1'000'000);
  disks.disk("/few", 9'000'000'000, 12);
  const LocalRoot root = disks.find({"/small", "/few"});
  CHECK(root.directory == "/var/tmp/sharefs-alice");
  CHECK(root.problem.find("/small/alice has 977 KiB free") != std::string::npos);
  CHECK(root.problem.find("/few/alice has only 12 free inodes") != std::string::npos);
}

TEST_CASE("requirement 9: where nothing has room there is no directory, and the reasons are reported") {
  Disks disks;
  disks.disk("/small", 1'000'000);
  disks.spaces["/var/tmp"] = disks.spaces["/small"];
  const LocalRoot root = disks.find({"/small"});
  CHECK(root.directory.empty());
  CHECK(root.problem.find("caches.min_free is 1.0 GiB") != std::string::npos);
}

TEST_CASE("attack: a directory that others may write without a sticky bit is refused, and so is one below it") {
  Disks disks;
  disks.make("/open", 0777);
  disks.make("/open/deep");
  disks.make("/group", 02775);
  disks.make("/bobs", 0755, k_bob);
  for (const std::string directory : {"/open", "/open/deep", "/open/missing", "/group", "/bobs"}) {
    INFO(directory);
    const LocalRoot root = disks.find({directory});
    CHECK(root.directory == "/var/tmp/sharefs-alice");
    CHECK(root.problem.find(directory.substr(0, directory.find('/', 1))) != std::string::npos);
  }
  disks.make("/open", 01777);
  CHECK(disks.find({"/open"}).directory == "/open/alice");
  CHECK(disks.find({"/open/deep"}).directory == "/open/deep/alice");
}

TEST_CASE("attack: names that somebody else made first are not used, and are not listed") {
  Disks disks;
  disks.make("/cache", 01777);
  disks.make("/cache/alice", 0777, k_bob);
  const LocalRoot root = disks.find({"/cache"});
  CHECK(root.directory == "/var/tmp/sharefs-alice");
  CHECK(root.problem == "/cache/alice belongs to somebody else");
  CHECK(root.hint == "as root, remove /cache/alice");
  disks.make("/var/tmp/sharefs-alice", 0700);
  CHECK(own_directories(disks.system, {{"/cache"}, 0}, disks.system.machine.identity) ==
        std::vector<std::string>{"/var/tmp/sharefs-alice"});
  disks.make("/var/tmp/sharefs-alice", 0700, k_bob);
  CHECK(disks.find({"/cache"}).directory.empty());
  CHECK(disks.find({"/cache"}).taken);
}

TEST_CASE("attack: whatever stands at a user's own name, another directory is used") {
  Disks disks;
  const std::string above = GENERATE(as<std::string>(), "/cache", "/var/tmp");
  const bool fallback = above == "/var/tmp";
  const std::string name = fallback ? "/var/tmp/sharefs-alice" : "/cache/alice";
  const std::vector<std::string> choice{fallback ? "/nfs" : "/cache"};
  disks.make("/cache", 01777);
  disks.make("/elsewhere", 0700);
  const std::string real = disks.directory.path() + name;
  std::string because;
  SECTION("a file") {
    disks.directory.write(name.substr(1), "x");
    because = " is not a directory";
  }
  SECTION("a link") {
    fs::create_symlink("/elsewhere", real);
    because = " is a link";
  }
  SECTION("a link to nothing") {
    fs::create_symlink("/nowhere", real);
    because = " is a link";
  }
  SECTION("a link of somebody else") {
    fs::create_symlink("/elsewhere", real);
    REQUIRE(::lchown(real.c_str(), k_bob, k_bob) == 0);
    because = " belongs to somebody else";
  }
  SECTION("a directory of somebody else") {
    disks.make(name, 0700, k_bob);
    because = " belongs to somebody else";
  }
  SECTION("a directory of one's own that others may write") {
    disks.make(name, 0770);
    because = "others may write to ";
  }
  SECTION("a FIFO") {
    REQUIRE(::mkfifo(real.c_str(), 0600) == 0);
    because = " is not a directory";
  }
  const std::string why = because.starts_with(" ") ? name + because : because + name;
  const LocalRoot root = disks.find(choice);
  CHECK(root.directory == (fallback ? "" : "/var/tmp/sharefs-alice"));
  CHECK(root.problem.ends_with(why));
  CHECK((fallback || root.hint.ends_with("remove " + name)));
  fs::remove_all(real);
  CHECK(disks.find(choice).problem.find(name) == std::string::npos);
}

TEST_CASE("a directory of one's own that only the group may read is used") {
  Disks disks;
  disks.make("/cache", 01777);
  disks.make("/cache/alice", 0750);
  CHECK(disks.find({"/cache"}) == LocalRoot{"/cache/alice", "", ""});
}

TEST_CASE("caches.local takes variables of the batch system") {
  const std::vector<std::string> environment{"TMPDIR=/local/job.1", "JOB=17",      "EMPTY=",    "RELATIVE=x/y",
                                             "BLANK=/a b",          "UP=/a/../b/", "PARENT=..", "GLOB=/a*"};
  struct Row {
    const char* directory;
    const char* path;
    const char* why_not;
  };
  for (const Row& row : {
           Row{"/data/hf", "/data/hf", ""},
           Row{"/var/cache/sharefs", "/var/cache/sharefs", ""},
           Row{"$TMPDIR", "/local/job.1", ""},
           Row{"${TMPDIR}/hf", "/local/job.1/hf", ""},
           Row{"/scratch/$JOB/x", "/scratch/17/x", ""},
           Row{"/scratch/job${JOB}", "/scratch/job17", ""},
           Row{"$UP", "/b", ""},
           Row{"$NONE/hf", "", "$NONE/hf: NONE is not set"},
           Row{"$EMPTY/hf", "", "$EMPTY/hf: EMPTY is not set"},
           Row{"/scratch/$NONE", "", "/scratch/$NONE: NONE is not set"},
           Row{"$NONE$TMPDIR", "", "$NONE$TMPDIR: NONE is not set"},
           Row{"$RELATIVE/hf", "", "$RELATIVE/hf: RELATIVE is no absolute path"},
           Row{"/scratch/$TMPDIR", "", "/scratch/$TMPDIR: TMPDIR is no name"},
           Row{"/scratch/$PARENT", "", "/scratch/$PARENT: PARENT is no name"},
           Row{"$BLANK", "", "$BLANK: BLANK has characters that launchers would change"},
           Row{"$GLOB", "", "$GLOB: GLOB has characters that launchers would change"},
           Row{"$", "", "$: a `$` in front of no variable"},
       }) {
    INFO(row.directory);
    const auto found = expand_directory(row.directory, environment);
    CHECK(found.value_or("") == row.path);
    CHECK((found ? "" : found.error().message) == row.why_not);
  }
  Disks disks;
  disks.make("/local/job.1", 0700);
  CHECK(disks.find({"$TMPDIR"}, environment) == LocalRoot{"/local/job.1/alice", "", ""});
  const LocalRoot root = disks.find({"$NONE/hf"}, environment);
  CHECK(root.directory == "/var/tmp/sharefs-alice");
  CHECK(root.problem == "$NONE/hf: NONE is not set");
}

TEST_CASE("memory is used only where its path is written down, or with a warning where there is no disk") {
  Disks disks;
  disks.system.machine.add_mount("tmpfs", "/shm", "tmpfs");
  disks.disk("/shm", 99'000'000'000);
  disks.disk("/disk", 2'000'000'000);
  const std::vector<std::string> environment{"TMPDIR=/shm"};
  CHECK(disks.find({"/shm", "/disk"}) == LocalRoot{"/shm/alice", "", ""});
  CHECK(disks.find({"$TMPDIR", "/disk"}, environment) == LocalRoot{"/disk/alice", "", ""});
  const LocalRoot fallback = disks.find({"$TMPDIR"}, environment);
  CHECK(fallback.directory == "/var/tmp/sharefs-alice");
  CHECK(fallback.problem == "/shm is memory (tmpfs)");
  CHECK_FALSE(fallback.memory);
  SECTION("/var/tmp is full") {
    disks.disk("/var/tmp", 1'000'000);
    ::chmod((disks.directory.path() + "/var/tmp").c_str(), 01777);
  }
  SECTION("/var/tmp is memory, too") {
    disks.system.machine.add_mount("tmpfs", "/var/tmp", "tmpfs");
  }
  const LocalRoot memory = disks.find({"$TMPDIR"}, environment);
  CHECK(memory.directory == "/shm/alice");
  CHECK(memory.memory);
  CHECK(memory.problem.find("/shm is memory (tmpfs), and no disk can be used") != std::string::npos);
}

TEST_CASE("the hint cures what keeps the first directory from being used") {
  Disks disks;
  const auto found = [&](const std::string& directory) {
    const auto root = disks.find({directory, "/gone-too"});
    CHECK(root.directory == "/var/tmp/sharefs-alice");
    return std::pair(root.problem, root.hint);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  disks.not_writable = "/"; // the nearest directory above that exists
  auto [problem, hint] = found("/gone/deep");
  CHECK(has(problem, "/gone/deep is not there"));
  CHECK(hint == "run `install -d -m 1777 /gone/deep` as root");

  disks.make("/closed");
  disks.make("/gone-too"); // not writable either: the cure of the first one is said
  disks.not_writable = "/closed";
  disks.spaces["/gone-too"] = sys::Space{{}, 9'000'000'000, 1, 10, 10};
  std::tie(problem, hint) = found("/closed");
  CHECK(has(problem, "/closed cannot be written"));
  CHECK(hint == "run `chmod 1777 /closed` as root");

  disks.system.machine.add_mount("/dev/closed", "/closed", "xfs");
  auto table = disks.system.machine.mounts.entries();
  table.back().options = "ro,relatime";
  disks.system.machine.mounts = sys::MountTable(table);
  std::tie(problem, hint) = found("/closed");
  CHECK(has(problem, "/closed lies on /closed, which is mounted read-only"));
  CHECK(hint == "run `mount -o remount,rw /closed` as root");

  disks.make("/disk");
  disks.spaces["/disk"] = sys::Space{{}, 9'000'000'000, 1'000'000, 2'000'000, 1'000'000};
  std::tie(problem, hint) = found("/disk");
  CHECK(has(hint, "`sharefs cache prune`"));
  disks.spaces["/disk"] = sys::Space{{}, 500'000'000, 400'000'000, 2'000'000, 1'000'000};
  std::tie(problem, hint) = found("/disk");
  CHECK(has(problem, "in all"));
  CHECK(has(hint, "that is larger"));

  disks.make("/open", 0777);
  std::tie(problem, hint) = found("/open");
  CHECK(hint == "run `chmod 1777 /open` as root");
  std::tie(problem, hint) = found("/nfs");
  CHECK(has(hint, "this host's own disk"));
}

TEST_CASE("the directories of caches.local are made, and opened only if they are root's") {
  if (::geteuid() != 0)
    return;
  Disks disks;
  disks.make("/root-only", 0755);
  disks.make("/right", 01777);
  disks.make("/bobs", 0755, k_bob);
  disks.make("/elsewhere", 01777);
  fs::create_symlink("/elsewhere/x", disks.directory.path() + "/link");
  REQUIRE(::lchown((disks.directory.path() + "/link").c_str(), k_bob, k_bob) == 0);
  fs::create_symlink("/right", disks.directory.path() + "/roots-link");
  disks.make("/right/theirs", 0755, k_bob);
  fs::create_symlink("/right", disks.directory.path() + "/to-right");
  fs::create_symlink("/bobs", disks.directory.path() + "/to-bobs");
  fs::create_symlink("/unmounted/x", disks.directory.path() + "/to-nothing");
  const auto plan = plan_local_directories(
      disks.system,
      {"/right", "/new/deep", "/root-only", "/bobs", "/nfs/x", "$JOB/x", "/link/y", "/etc/x", "/roots-link/z",
       "/to-right", "/to-bobs", "/to-nothing"},
      {"/right/staged", "/new/deep/a/b", "/new/deep/a/c", "/root-only/conda", "/bobs/x", "/nfs/x/y", "/right/theirs",
       "/elsewhere/no"},
      [](const std::string& path) { return path == "/etc/x" ? "it is the system's" : std::string(); });
  std::vector<std::string> steps;
  for (const auto& step : plan.steps)
    steps.push_back(plan::describe(step.action));
  CHECK(steps.size() == 7);
  CHECK(std::ranges::count(plan.steps, true, &plan::Step::bookkeeping) == 3); // what a user could take from root
  REQUIRE(plan.notes.size() == 5); // bob's directory, bob's link, the system's, two links of root
  CHECK(plan.notes[3].ends_with(
      "to-bobs (`caches.local`) is left as it is: it is a link to /bobs, which has mode 0755 instead of 1777"));
  CHECK(plan.notes[4].ends_with("it is a link to /unmounted/x, which does not exist"));
  for (const auto& step : plan.steps) {
    const auto done = plan::apply_action(step.action, disks.system);
    INFO(plan::describe(step.action) << (done ? "" : ": " + done.error().message));
    CHECK(done);
  }
  const auto mode = [&](const std::string& path) {
    struct stat status{};
    return ::stat((disks.directory.path() + path).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
  };
  CHECK(mode("/new") == 0755);
  CHECK(mode("/new/deep") == 01777);
  CHECK(mode("/root-only") == 01777);
  CHECK(mode("/right/z") == 01777);
  for (const auto* of_root : {"/right/staged", "/new/deep/a", "/root-only/conda"})
    CHECK(mode(of_root) == 0755);
  CHECK(mode("/new/deep/a/b") == 0);
  CHECK(mode("/bobs") == 0755);
  CHECK_FALSE(fs::exists(disks.directory.path() + "/elsewhere/x"));
  CHECK(plan_local_directories(disks.system, {"/right", "/new/deep", "/root-only"}, {"/right/staged"}, [](const auto&) {
          return "";
        }).steps.empty());
}

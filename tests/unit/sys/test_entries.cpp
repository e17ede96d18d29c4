#include "sys/fs/entry.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/fs/extended_attributes.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/call.hpp"
#include "sys/real_system.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

Entry look(EntryQuery query, const std::optional<User>& as = {}) {
  return read_entries(Files(), MountTable(), {{std::move(query)}, 30s, as}).at(0);
}

/// In a child with a mount namespace of its own: `work` may mount. Gives its text; "no mounts" without the privilege.
Result<std::string> with_own_mounts(const std::function<std::string()>& work) {
  return call(std::nullopt, 60s, [&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("no mounts");
    return work();
  });
}

/// A FUSE file system that nobody serves hangs at `path` like a dead server.
bool mount_hung(const std::string& path, const char* source = "hung") {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  return device >= 0 && ::mount(source, path.c_str(), "fuse", MS_NODEV, options.c_str()) == 0;
}

/// Of this thread.
std::vector<pid_t> children() {
  std::ifstream file("/proc/thread-self/children");
  std::vector<pid_t> all;
  for (pid_t one = 0; file >> one;)
    all.push_back(one);
  return all;
}

void check_text(const Result<std::string>& answer, const std::string& wanted) {
  REQUIRE(answer);
  if (*answer == "no mounts")
    WARN("no right to mount here");
  else
    CHECK(*answer == wanted);
}

} // namespace

TEST_CASE("entries: kinds") {
  const test::TemporaryDirectory directory;
  directory.write("file", "hello");
  ::chmod((directory / "file").c_str(), 04640);
  fs::create_symlink("file", directory / "link");
  fs::create_symlink("none", directory / "dangling");
  ::mkfifo((directory / "fifo").c_str(), 0600);
  const auto file = look({.path = directory / "file"});
  CHECK(file.kind == EntryKind::file);
  CHECK(file.mode == 04640);
  CHECK(file.uid == ::geteuid());
  CHECK(file.size == 5);
  CHECK(file.inode != 0);
  CHECK(file.mtime > 1'600'000'000);
  CHECK(file.resolved == directory / "file");
  CHECK(file.ancestor == directory.path());
  CHECK(file.error_number == 0);
  CHECK(look({.path = directory / "link"}).link_target == "file");
  CHECK(look({.path = directory / "link", .follow = true}).resolved == directory / "file");
  for (const auto* name : {"link", "dangling", "nowhere/at/all"}) // what the server has is what is there
    CHECK(look({.path = directory / name, .follow = true, .fresh = true}) ==
          look({.path = directory / name, .follow = true}));
  CHECK(look({.path = directory / "dangling"}).kind == EntryKind::symlink);
  const auto dangling = look({.path = directory / "dangling", .follow = true});
  CHECK(dangling.kind == EntryKind::missing);
  CHECK(dangling.resolved == directory / "none");
  CHECK(look({.path = directory / "fifo", .read_bytes = 10}).kind == EntryKind::other);
  CHECK(look({.path = directory / "file/below"}).kind == EntryKind::missing);
  CHECK(look({.path = directory / "file/below"}).error_number == ENOTDIR);
}

TEST_CASE("entries: names, content, space and access only when asked for") {
  const test::TemporaryDirectory directory;
  directory.write("c", "abcdef");
  directory.write("b/x", "");
  const auto plain = look({.path = directory.path()});
  CHECK(plain.names.empty());
  CHECK_FALSE(plain.space);
  CHECK_FALSE(plain.writable);
  const auto all = look({.path = directory.path(), .list = true, .space = true, .access = true});
  CHECK(all.names == std::vector<std::string>{"b", "c"});
  REQUIRE(all.space);
  CHECK(all.space->size_bytes > 0);
  CHECK(all.space->free_bytes <= all.space->size_bytes);
  CHECK(all.writable);
  CHECK(look({.path = directory / "c", .read_bytes = 4}).content == "abcd");
  CHECK(look({.path = directory / "c", .read_bytes = 40}).content == "abcdef");
}

TEST_CASE("entries: the write test leaves nothing behind, and takes away what a killed one left") {
  const test::TemporaryDirectory directory;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  directory.write(".sharefs-probe-" + std::string(host) + "-" + std::to_string(::geteuid()), "old");
  const auto tested = look({.path = directory.path(), .write_test = true});
  CHECK(tested.error_number == 0);
  CHECK(fs::is_empty(directory.path()));
  CHECK(look({.path = "/proc", .write_test = true}).detail.starts_with("create: "));
}

TEST_CASE("entries: a note is left beside the directory that a link leads to, and nowhere else") {
  const test::TemporaryDirectory directory;
  const Note note{".generations", "uses", "node1.12.34"};
  const auto made = [&](const std::string& path) {
    return look({.path = directory / path, .follow = true, .note = note}).made.has_value();
  };
  for (const char* above : {".generations/llm", "envs/llm"})
    for (const char* name : {"0003", "uses"})
      fs::create_directories(directory / (std::string(above) + "/" + name));
  fs::create_directory_symlink(".generations/llm/0003", directory / "llm");
  CHECK(made("llm"));
  CHECK(made("llm")); // it is there
  CHECK_FALSE(made("envs/llm/0003"));
  CHECK_FALSE(made("llm/missing"));
  CHECK_FALSE(look({.path = directory / "llm", .note = note}).made); // the link itself
  std::vector<std::string> names;
  for (const auto& file : fs::recursive_directory_iterator(directory.path()))
    if (file.is_symlink() && file.path() != directory / "llm")
      names.push_back(file.path().lexically_relative(directory.path()));
  CHECK(names == std::vector<std::string>{".generations/llm/uses/node1.12.34.0003"});
  fs::remove_all(directory / ".generations/llm/uses");
  CHECK_FALSE(made("llm"));
  fs::create_directory_symlink(directory / "envs", directory / ".generations/llm/uses");
  CHECK_FALSE(made("llm"));
  CHECK_FALSE(fs::exists(directory / "envs/node1.12.34.0003"));
}

TEST_CASE("entries: what another user sees") {
  const test::TemporaryDirectory directory;
  directory.write("secret/file", "x");
  fs::permissions(directory.path(), fs::perms(0755));
  fs::permissions(directory / "secret", fs::perms(0700));
  if (::geteuid() != 0) {
    const auto refused = look({.path = "/"}, test::nobody());
    CHECK(refused.kind == EntryKind::unknown);
    CHECK(refused.error().code == ErrorCode::permission);
    return;
  }
  const auto hidden = look({.path = directory / "secret/file"}, test::nobody());
  CHECK(hidden.kind == EntryKind::unknown);
  CHECK(hidden.error_number == EACCES);
  const auto closed = look({.path = directory / "secret", .list = true}, test::nobody());
  CHECK(closed.kind == EntryKind::directory);
  CHECK(closed.error_number == EACCES);
  CHECK(closed.names.empty());
  const auto unwritable =
      look({.path = directory.path(), .space = true, .access = true, .write_test = true}, test::nobody());
  CHECK(unwritable.detail == "create: Permission denied");
  CHECK(unwritable.space->size_bytes > 0);
  CHECK_FALSE(unwritable.writable);
}

TEST_CASE("entries: too many answers at once are said to be that") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  directory.write("file", std::string(1U << 20U, 'x'));
  fs::permissions(directory.path(), fs::perms(0755));
  fs::permissions(directory / "file", fs::perms(0644));
  const EntryRequest request{std::vector(300, EntryQuery{.path = directory / "file", .read_bytes = 1U << 20U}), 30s,
                             test::nobody()};
  const auto entries = read_entries(Files(), MountTable(), request);
  CHECK(entries.front().content.size() == 1U << 20U);
  CHECK(entries.back().detail == "the child process has answered more than 256 MiB");
  CHECK(look({.path = directory / "file"}, test::nobody()).kind == EntryKind::file);
}

TEST_CASE("entries: read-only and full file systems") {
  const test::TemporaryDirectory directory;
  const auto answer = with_own_mounts([&]() -> std::string {
    if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=4k") != 0)
      return "no mounts";
    const int fill = ::open((directory / "fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (::write(fill, "x", 1) == 1)
      ;
    ::close(fill);
    auto text = look({.path = directory.path(), .write_test = true}).detail;
    ::mount("none", directory.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr);
    return text + ", " + look({.path = directory.path(), .write_test = true}).detail;
  });
  check_text(answer, "write: No space left on device, create: Read-only file system");
}

TEST_CASE("entries: many, in order") {
  const test::TemporaryDirectory directory;
  std::vector<EntryQuery> queries;
  for (int i = 0; i < 1000; ++i) {
    const auto name = std::to_string(i);
    if (i % 3 != 0)
      directory.write(name, name);
    queries.push_back({.path = directory / name, .read_bytes = 10});
  }
  for (const auto& as : {std::optional<User>(), ::geteuid() == 0 ? std::optional(test::nobody()) : std::nullopt}) {
    fs::permissions(directory.path(), fs::perms(0755));
    const auto entries = read_entries(Files(), MountTable(), {queries, 30s, as});
    REQUIRE(entries.size() == queries.size());
    bool right = true;
    for (std::size_t i = 0; i < entries.size(); ++i)
      right =
          right && entries[i].path == queries[i].path && entries[i].content == (i % 3 == 0 ? "" : std::to_string(i));
    CHECK(right);
  }
  CHECK(read_entries(Files(), MountTable(), {}).empty());
}

TEST_CASE("entries: where a path lies is said by the given mount table") {
  const auto table = MountTable::parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                       "2 1 0:50 / /data rw - nfs4 server:/x rw\n");
  REQUIRE(table);
  const auto entries =
      read_entries(Files(), *table, {{{.path = "/data/share", .locks = true}, {.path = "/etc", .locks = true}}});
  CHECK(entries[0].mount == "/data");
  CHECK(entries[0].fs_type == "nfs4");
  CHECK(entries[0].shared);
  CHECK(entries[0].lock_scope == LockScope::all_hosts);
  CHECK(entries[1].mount == "/");
  CHECK_FALSE(entries[1].shared);
  CHECK(entries[1].lock_scope == LockScope::this_host);
}

TEST_CASE("entries: hung mounts cost one deadline together, few descriptors, and hold nobody else up", "[waits]") {
  const test::TemporaryDirectory directory;
  constexpr int k_mounts = 60;
  const auto answer = with_own_mounts([&]() -> std::string {
    std::vector<EntryQuery> queries;
    for (int i = 0; i < k_mounts; ++i) {
      const auto path = directory / std::to_string(i);
      fs::create_directory(path);
      if (i % 3 != 0 && !mount_hung(path))
        return "no mounts";
      for (const std::string& name : {std::string(), std::string("/x"), std::string("/y")})
        queries.push_back({.path = path + name, .space = true});
    }
    const rlimit few{128, 128};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto begin = std::chrono::steady_clock::now();
    const auto entries = read_entries(Files(), MountTable(), {queries, 500ms});
    const auto took = std::chrono::steady_clock::now() - begin;
    std::string text = took < 40 * 500ms ? "together" : "in turn";
    bool right = true;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool is_local = (i / 3) % 3 == 0;
      right = right && (is_local ? entries[i].kind == (i % 3 == 0 ? EntryKind::directory : EntryKind::missing)
                                 : entries[i].kind == EntryKind::unknown && entries[i].hung());
    }
    if (!right)
      for (const Entry& entry : entries)
        text += "\n" + entry.path.substr(directory.path().size()) + " " + to_string(entry.kind) + " " + entry.detail;
    return text + ", " + entries[4].detail;
  });
  check_text(answer, "together, no answer within 500.0 ms");
}

TEST_CASE("entries: a bucket that nobody serves is shared, and is not waited for", "[waits]") {
  const test::TemporaryDirectory directory;
  const auto answer = with_own_mounts([&]() -> std::string {
    std::vector<EntryQuery> queries;
    for (const char* source : {"mountpoint-s3", "my-bucket", "JuiceFS:vol", "/home/local"}) {
      const auto path = directory / std::to_string(queries.size());
      fs::create_directory(path);
      if (!mount_hung(path, source))
        return "no mounts";
      queries.push_back({.path = path + "/hf/datasets"});
    }
    const auto table = Files().mounts();
    std::string text;
    for (const auto& entry : read_entries(Files(), table.value_or(MountTable()), {queries, 200ms}))
      text +=
          std::string(entry.hung() ? "hung " : "answered ") + entry.fs_type + (entry.shared ? " shared, " : " own, ");
    return text;
  });
  check_text(answer, "hung fuse shared, hung fuse shared, hung fuse shared, hung fuse own, ");
}

TEST_CASE("entries: a child that has answered is asked again, as whom it has become, until it ends") {
  const auto path = "/proc/" + std::to_string(::getpid()) + "/cmdline"; // which is read by a child
  const auto before = children();
  const auto own = [&] { // those of the looks
    auto all = children();
    std::erase_if(all, [&](pid_t one) { return std::ranges::find(before, one) != before.end(); });
    return all;
  };
  std::vector<pid_t> first;
  {
    const Files files;
    const auto reads = [&] { return files.entry({.path = path, .read_bytes = 1}).content.size() == 1; };
    CHECK(reads());
    first = own();
    REQUIRE(first.size() == 1);
    CHECK(reads());
    CHECK(own() == first);
    CHECK(call(std::nullopt, 30s, [&]() -> Result<std::string> { return reads() ? "read" : "not"; }) == "read");
    bool read = false;
    std::thread([&] { read = reads(); }).join();
    CHECK(read);
    CHECK(reads());
    CHECK(own() == first); // what other processes and threads have asked is none of its business

    ::kill(first.front(), SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(first.front()), &ended, WEXITED | WNOWAIT);
    CHECK(reads());
    REQUIRE(own().size() == 1);
    CHECK(own() != first);
    first = own();
    if (::geteuid() == 0)
      for (const std::uint32_t uid : {65534U, 65533U, 65534U}) {
        const auto as = User{"somebody", uid, uid, {uid}, "/"};
        const auto found =
            read_entries(files, MountTable(), {{{.path = "/proc/self/status", .read_bytes = 4096}}, 30s, as}).at(0);
        CHECK(found.content.find("\nUid:\t" + std::to_string(uid) + "\t") != std::string::npos);
        CHECK(own().size() == 2);
      }
  }
  CHECK(own().empty());
}

TEST_CASE("entries: a child that waits sees what is mounted later, and one that hangs is not asked again", "[waits]") {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "share");
  fs::permissions(directory.path(), fs::perms(0755));
  const auto answer = with_own_mounts([&]() -> std::string {
    const Files files("/", 300ms);
    const auto look_there = [&](const std::string& path) {
      const auto entry = read_entries(files, MountTable(), {{{.path = directory / path}}, 300ms, test::nobody()}).at(0);
      return entry.hung() ? std::string("hung") : std::string(to_string(entry.kind));
    };
    std::string text = look_there("share/x");
    if (::mount("none", (directory / "share").c_str(), "tmpfs", 0, nullptr) != 0)
      return "no mounts";
    fs::create_directory(directory / "share/x");
    text += ", " + look_there("share/x");
    fs::create_directory(directory / "hung");
    if (!mount_hung(directory / "hung"))
      return "no mounts";
    text += ", " + look_there("hung/x");
    text += ", " + look_there("share/x");
    return text;
  });
  check_text(answer, "missing, directory, hung, directory");
}

TEST_CASE("entries: what takes the place of this program has no child of it") {
  const auto answer = call(std::nullopt, 30s, []() -> Result<std::string> {
    RealSystem system;
    const auto path = "/proc/" + std::to_string(::getpid()) + "/cmdline";
    if (!system.entry({.path = path, .read_bytes = 1}).exists() || children().size() != 1)
      return std::string("no child");
    return system
        .exec({"sh", "-c", "read -r child </proc/$$/task/$$/children; exit 0${child:+7}"}, {"PATH=/bin:/usr/bin"})
        .message;
  });
  REQUIRE_FALSE(answer);
  CHECK(answer.error().message == "the child process gave no result"); // and ended with 0
}

TEST_CASE("files: a path that leads onto a hung mount is read with a deadline", "[waits]") {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "share");
  fs::create_symlink(directory / "share/exports", directory / "exports");
  const auto answer = with_own_mounts([&]() -> std::string {
    if (!mount_hung(directory / "share"))
      return "no mounts";
    const Files files("/", 300ms);
    const auto read = files.read(directory / "exports");
    return std::string(read ? "read" : to_string(read.error().code)) + " " +
           read.error().message.substr(directory.path().size());
  });
  check_text(answer, "timeout /exports: no answer within 300.0 ms");
}

TEST_CASE("files: only what nobody else could change is trusted") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  directory.write("etc/config", "x");
  fs::permissions(directory.path(), fs::perms(0755));
  fs::permissions(directory / "etc/config", fs::perms(0644));
  const Files files(directory.path());
  const auto text = [&] {
    const auto read = files.read_trusted("/etc/config");
    return read ? *read : read.error().message;
  };
  CHECK(text() == "x");
  fs::permissions(directory / "etc/config", fs::perms(0664));
  CHECK(text() == "/etc/config: can be changed by others (mode 0664)");
  fs::permissions(directory / "etc/config", fs::perms(0644));
  fs::permissions(directory / "etc", fs::perms(0775));
  CHECK(text() == "/etc/config: others could replace `config`: `/etc` has mode 0775");
  fs::permissions(directory / "etc", fs::perms(0755));
  REQUIRE(::chown((directory / "etc/config").c_str(), 65534, 65534) == 0);
  CHECK(text() == "/etc/config: belongs to uid 65534, who could make root do anything");
  directory.write("etc/real", "y");
  fs::remove(directory / "etc/config");
  fs::create_symlink("real", directory / "etc/config");
  CHECK(text() == "y");
  REQUIRE(::lchown((directory / "etc/config").c_str(), 65534, 65534) == 0);
  CHECK(text() == "/etc/config: `/etc/config` is a symbolic link of uid 65534");
  fs::remove(directory / "etc/config");
  fs::create_directory(directory / "etc/config");
  fs::permissions(directory / "etc/config", fs::perms(01777)); // as /tmp: nobody is to change that
  CHECK(text() == "/etc/config: is a directory");
}

TEST_CASE("the ACL is that of the file, also for a thread that has descriptors of its own") {
  const test::TemporaryDirectory directory;
  mode_t found = 0;
  std::thread([&] {
    REQUIRE(::unshare(CLONE_FILES) == 0); // as one that looks where it may hang
    const Fd fd(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    found = mode_by_acl(fd.get(), S_IFDIR | 02770U);
  }).join();
  CHECK(found == (S_IFDIR | 02770U));
}

#include "sys/fs/files.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/process/call.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
namespace fs = std::filesystem;

namespace {

struct stat status_of(const std::string& path) {
  struct stat info{};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Over what is there now.
Result<void> write(const Files& files, const std::string& path, const std::string& content, mode_t mode = 0644) {
  const auto before = files.read_if_exists(path);
  return files.write_if(path, before ? *before : std::nullopt, content, mode);
}

} // namespace

TEST_CASE("reading below a root") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  root.write("etc/exports", "/srv *(ro)\n");
  CHECK(files.read("/etc/exports") == "/srv *(ro)\n");
  CHECK(files.read_if_exists("/etc/exports").value() == "/srv *(ro)\n");
  CHECK_FALSE(files.read_if_exists("/etc/missing").value());
  CHECK_FALSE(files.read_if_exists("/etc/exports/below/a/file").value());
  CHECK(files.read("/etc/missing").error().code == ErrorCode::not_found);
  CHECK(files.read("/etc/missing").error().message == "/etc/missing: No such file or directory");
  CHECK(files.read("/etc").error().message == "/etc: is a directory");
  CHECK(files.read("/etc/exports", 11).has_value());
  CHECK(files.read("/etc/exports", 10).error().code == ErrorCode::failed);
}

TEST_CASE("a fifo is not waited for") {
  const test::TemporaryDirectory root;
  REQUIRE(::mkfifo((root / "fifo").c_str(), 0600) == 0);
  const Files files(root.path());
  CHECK(files.read("/fifo").error().message == "/fifo: is not a regular file");
  CHECK_FALSE(write(files, "/fifo", "x"));
  CHECK(files.entry({.path = "/fifo"}).kind == EntryKind::other);
}

TEST_CASE("links are resolved inside the root") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  root.write("etc/real", "inside");
  fs::create_symlink("/etc/real", root / "absolute");
  fs::create_symlink("../../../../../../etc/real", root / "dots");
  fs::create_symlink("/etc", root / "directory");
  fs::create_symlink("loop", root / "loop");
  CHECK(files.read("/absolute") == "inside");
  CHECK(files.read("/dots") == "inside");
  CHECK(files.read("/directory/real") == "inside");
  CHECK(files.read("/../../etc/real") == "inside");
  CHECK(files.read("/directory/passwd").error().code == ErrorCode::not_found);
  CHECK_FALSE(files.read("/loop"));
  CHECK_FALSE(write(files, "/loop", "x"));
  CHECK(files.entry({.path = "/absolute"}).kind == EntryKind::symlink);
}

TEST_CASE("facts and names") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  root.write("d/b", "12345");
  root.write("d/a", "");
  root.write("d/.hidden", "");
  ::chmod((root / "d/b").c_str(), 04750);
  const auto entry = files.entry({.path = "/d/b"});
  CHECK(entry.kind == EntryKind::file);
  CHECK(entry.mode == 04750);
  CHECK(entry.size == 5);
  CHECK(entry.uid == ::geteuid());
  CHECK(files.entry({.path = "/d"}).kind == EntryKind::directory);
  CHECK(files.entry({.path = "/d/none"}).kind == EntryKind::missing);
  CHECK(files.list("/d") == std::vector<std::string>{".hidden", "a", "b"});
  CHECK(files.list("/none").error().code == ErrorCode::not_found);
  CHECK_FALSE(files.list("/d/b"));
}

TEST_CASE("the root itself") {
  CHECK(Files().is_live());
  CHECK(Files("/").root() == "/");
  CHECK(Files("/tmp/x/../y/").root() == "/tmp/y");
  CHECK_FALSE(Files("/tmp").is_live());
  CHECK_FALSE(Files("/nonexistent").read("/etc/passwd"));
  CHECK(Files().read("/etc/passwd").has_value());
  CHECK(Files().read("/proc/self/mountinfo").has_value()); // size 0, but content
}

TEST_CASE("writing makes a file of exactly that mode, or keeps what the old one had") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  const mode_t umask_before = ::umask(077);
  REQUIRE(write(files, "/new", "one", 0664));
  CHECK(root.read("new") == "one");
  CHECK((status_of(root / "new").st_mode & 07777) == 0664);

  ::chmod((root / "new").c_str(), 0640);
  const bool has_attributes = ::setxattr((root / "new").c_str(), "user.note", "kept", 4, 0) == 0;
  if (::geteuid() == 0)
    REQUIRE(::chown((root / "new").c_str(), 65534, 65533) == 0);
  const auto before = status_of(root / "new");
  REQUIRE(write(files, "/new", "two", 0777));
  ::umask(umask_before);
  const auto after = status_of(root / "new");
  CHECK(root.read("new") == "two");
  CHECK(after.st_ino != before.st_ino);
  CHECK(after.st_mode == before.st_mode);
  CHECK(after.st_uid == before.st_uid);
  CHECK(after.st_gid == before.st_gid);
  if (has_attributes) {
    char value[8] = {};
    CHECK(::getxattr((root / "new").c_str(), "user.note", value, sizeof value) == 4);
    CHECK(std::string(value) == "kept");
  }
  CHECK(names_in(root.path()) == std::vector<std::string>{"new"});
}

namespace {

/// user::rw-, user:65534:r--, group::r--, mask::r--, other::--- as the kernel stores it (linux/posix_acl_xattr.h).
const std::string k_acl_value = [] {
  std::string value("\x02\0\0\0", 4);
  const auto entry = [&value](unsigned tag, unsigned permissions, std::uint32_t id) {
    for (const unsigned part : {tag, permissions})
      value += {static_cast<char>(part & 0xFF), static_cast<char>(part >> 8)};
    value.append(reinterpret_cast<const char*>(&id), 4);
  };
  entry(0x01, 6, 0xFFFFFFFF);
  entry(0x02, 4, 65534);
  entry(0x04, 4, 0xFFFFFFFF);
  entry(0x10, 4, 0xFFFFFFFF);
  entry(0x20, 0, 0xFFFFFFFF);
  return value;
}();

std::string acl_of(const std::string& path, const char* name) {
  std::string value(256, '\0');
  const ssize_t size = ::getxattr(path.c_str(), name, value.data(), value.size());
  value.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return value;
}

} // namespace

TEST_CASE("an ACL stays, and a default ACL of the directory does not get into an old file") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  root.write("with", "");
  root.write("without", "");
  const char* access = "system.posix_acl_access";
  if (::setxattr((root / "with").c_str(), access, k_acl_value.data(), k_acl_value.size(), 0) != 0) {
    WARN("this file system has no ACLs");
    return;
  }
  const std::string before = acl_of(root / "with", access);
  REQUIRE(::setxattr(root.path().c_str(), "system.posix_acl_default", k_acl_value.data(), k_acl_value.size(), 0) == 0);
  const auto mode = status_of(root / "without").st_mode;
  REQUIRE(write(files, "/with", "x"));
  REQUIRE(write(files, "/without", "x"));
  CHECK(acl_of(root / "with", access) == before);
  CHECK(acl_of(root / "without", access).empty());
  CHECK(status_of(root / "without").st_mode == mode);
}

TEST_CASE("writing through a link replaces its target inside the root") {
  const test::TemporaryDirectory root;
  const test::TemporaryDirectory outside;
  const Files files(root.path());
  outside.write("file", "outside");
  root.write("real/file", "old");
  fs::create_symlink("/real/file", root / "absolute");
  fs::create_symlink("real", root / "directory");
  fs::create_symlink("directory/../made", root / "dangling"); // `..` of the target of `directory`
  fs::create_symlink(outside / "file", root / "leaves");
  REQUIRE(write(files, "/absolute", "new"));
  CHECK(root.read("real/file") == "new");
  CHECK(fs::is_symlink(root / "absolute"));
  REQUIRE(write(files, "/directory/file", "newer"));
  CHECK(root.read("real/file") == "newer");
  REQUIRE(write(files, "/dangling", "made"));
  CHECK(root.read("made") == "made");
  CHECK(write(files, "/leaves", "x").error().code == ErrorCode::not_found);
  CHECK(outside.read("file") == "outside");
}

TEST_CASE("what cannot be written leaves nothing behind") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  fs::create_directories(root / "d");
  CHECK(write(files, "/none/file", "x").error().code == ErrorCode::not_found);
  CHECK(write(files, "/d", "x").error().message == "/d: is a directory");
  CHECK_FALSE(write(files, "/", "x"));
  CHECK_FALSE(write(files, "/d/..", "x"));
  CHECK_FALSE(write(files, "/d/" + std::string(256, 'n'), "x"));
  CHECK(write(files, "/d/" + std::string(255, 'n'), "x").has_value()); // the temporary name has to be shorter
  CHECK(names_in(root / "d") == std::vector<std::string>{std::string(255, 'n')});
}

TEST_CASE("a left-over of a killed run with the same process id does not stop a new one") {
  const test::TemporaryDirectory root;
  const std::string left_over = ".file.sharefs-" + std::to_string(::getpid());
  root.write(left_over, "half");
  REQUIRE(write(Files(root.path()), "/file", "whole"));
  CHECK(root.read("file") == "whole");
  CHECK(root.read(left_over) == "half");
}

TEST_CASE("write_if replaces only what was expected") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  struct Row {
    std::optional<std::string> there, before;
    bool good;
  };
  const Row row = GENERATE(Row{std::nullopt, std::nullopt, true}, Row{std::nullopt, "", false},
                           Row{"", std::nullopt, false}, Row{"", "", true}, Row{"old", "old", true},
                           Row{"older", "old", false}, Row{"old", "older", false}, Row{"old", "odd", false});
  INFO(row.there.value_or("(none)") << " / " << row.before.value_or("(none)"));
  if (row.there)
    root.write("file", *row.there);
  const auto written = files.write_if("/file", row.before, "new");
  CHECK(written.has_value() == row.good);
  if (!row.good)
    CHECK(written.error().code == ErrorCode::conflict);
  if (row.good)
    CHECK(root.read("file") == "new");
  else
    CHECK(root.read("file") == row.there.value_or(""));
  CHECK(names_in(root.path()).size() == (row.good || row.there ? 1 : 0));
}

#if defined(__x86_64__) // the handler sets a register
namespace {

std::string g_theirs; ///< made just before a file gets its name; empty: nothing

extern "C" void answer_renameat2(int, siginfo_t*, void* context) {
  if (!g_theirs.empty())
    ::close(::open(g_theirs.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -EINVAL;
}

/// From here on renameat2(2) does not know its flags, as on NFS.
bool break_renameat2() {
  struct sigaction action{};
  action.sa_sigaction = answer_renameat2;
  action.sa_flags = SA_SIGINFO;
  sock_filter filter[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                          {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_renameat2},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{4, filter};
  return ::sigaction(SIGSYS, &action, nullptr) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace

TEST_CASE("a new file takes nobody's name, also where the file system knows no exclusive rename") {
  const bool in_the_gap = GENERATE(false, true);
  const test::TemporaryDirectory root;
  const auto written = call(std::nullopt, std::chrono::seconds(30), [&]() -> Result<std::string> {
    g_theirs = in_the_gap ? root / "file" : "";
    if (!break_renameat2())
      return std::string("no seccomp");
    const auto done = Files(root.path()).write_if("/file", std::nullopt, "ours");
    return std::string(done ? "done" : to_string(done.error().code));
  });
  if (written == "no seccomp")
    return;
  CHECK(written == (in_the_gap ? "conflict" : "done"));
  CHECK(root.read("file") == (in_the_gap ? "" : "ours"));
  CHECK(names_in(root.path()) == std::vector<std::string>{"file"});
}
#endif

TEST_CASE("of many writers at once each file is whole") {
  const test::TemporaryDirectory root;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&root, t] {
      for (int i = 0; i < 10; ++i)
        (void)write(Files(root.path()), "/file", std::string(5000, static_cast<char>('a' + t)));
    });
  for (std::thread& thread : threads)
    thread.join();
  const std::string content = root.read("file");
  REQUIRE(content.size() == 5000);
  CHECK(content == std::string(5000, content[0]));
  CHECK(names_in(root.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("removing") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  root.write("file", "x");
  fs::create_symlink("file", root / "link");
  fs::create_directory(root / "d");
  REQUIRE(files.remove("/link"));
  CHECK(fs::exists(root / "file"));
  REQUIRE(files.remove("/file"));
  CHECK(files.remove("/file").error().code == ErrorCode::not_found);
  CHECK_FALSE(files.remove("/d"));
}

TEST_CASE("notes come and go, in a directory that nobody else could have put there") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  CHECK(files.replace_notes("/uses", "a", {}).error().code == ErrorCode::not_found);
  fs::create_directories(root / "uses/d");
  root.write("uses/old", "");
  REQUIRE(files.replace_notes("/uses", "a", {"old", "gone", "d"}));
  CHECK(names_in(root / "uses") == std::vector<std::string>{"a", "d"});
  REQUIRE(files.replace_notes("/uses", "a", {})); // by the same process: it says the same
  fs::create_symlink("../file", root / "uses/link");
  root.write("file", "x");
  REQUIRE(files.replace_notes("/uses", "link", {}));
  CHECK(files.read("/file").value() == "x");
  CHECK_FALSE(files.replace_notes("/file", "a", {}));
}

TEST_CASE("making directories") {
  const test::TemporaryDirectory root;
  const Files files(root.path());
  fs::create_directory(root / "real");
  fs::create_symlink("/real", root / "link");
  fs::create_symlink("/none", root / "dangling");
  root.write("file", "");
  const mode_t umask_before = ::umask(077);
  REQUIRE(files.make_directories("/a/b/c", 0775));
  ::umask(umask_before);
  for (const char* name : {"a", "a/b", "a/b/c"})
    CHECK((status_of(root / name).st_mode & 07777) == 0775);
  CHECK(files.make_directories("/a/b/c").has_value());
  CHECK(files.make_directories("/").has_value());
  REQUIRE(files.make_directories("/link/x"));
  CHECK(fs::is_directory(root / "real/x"));
  CHECK_FALSE(files.make_directories("/file/x"));
  CHECK(files.make_directories("/dangling/x").has_value()); // root's own link: where it leads
  CHECK(fs::is_directory(root / "none/x"));
  // A set-group-id parent hands its bit down, and it stays.
  ::chmod((root / "a").c_str(), 02775);
  REQUIRE(files.make_directories("/a/shared", 0755));
  CHECK((status_of(root / "a/shared").st_mode & 07777) == 02755);
}

#include "base/text.hpp"
#include "given_tree.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/process/fd.hpp"
#include "tree/survey.hpp"

#include <array>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

namespace {

/// Of several pieces, and of no whole number of blocks.
std::string large_content(char first = 'a') {
  std::string content(3'500'001, first);
  for (std::size_t i = 0; i < content.size(); i += 1000)
    content[i] = static_cast<char>('a' + i / 1000 % 26);
  return content;
}

struct GivenFile {
  TemporaryDirectory directory;
  std::string content = large_content();
  std::string from = directory / "from/file", to = directory / "to/file", part = directory / "to/.file.part";

  GivenFile() {
    directory.write("from/file", content);
    fs::create_directory(directory / "to");
  }
  [[nodiscard]] Result<tree::FetchReport> fetch(const tree::Options& options = {}) const {
    return tree::fetch({from}, {.path = to, .guarded = true}, {sys::sha256(content), content.size()}, options);
  }
  /// Only root can give the file away.
  [[nodiscard]] Result<tree::FetchReport> fetch_for_another() const {
    return tree::fetch({from}, {.path = to, .guarded = true}, {sys::sha256(content), content.size()}, {}, {}, {},
                       tree::FileAttributes{.uid = 65533, .gid = 65533, .mode = 0640});
  }
  [[nodiscard]] bool is_whole() const { return directory.read("to/file") == content && !fs::exists(part); }
  [[nodiscard]] bool nothing_is_left() const { return fs::is_empty(directory / "to"); }
};

} // namespace

TEST_CASE("a file is fetched, and kept where it is right") {
  const GivenFile given;
  CHECK(given.fetch() == tree::FetchReport{given.content.size(), 0});
  CHECK(given.is_whole());
  CHECK((status_of(given.to).st_mode & 07777U) == 0600);
  const auto inode = status_of(given.to).st_ino;
  CHECK(given.fetch() == tree::FetchReport{0, given.content.size()});
  CHECK(status_of(given.to).st_ino == inode);
  SECTION("another content is replaced, never written into") {
    given.directory.write("to/file", large_content('z'));
    CHECK(given.fetch()->bytes == given.content.size());
    CHECK(given.is_whole());
    CHECK(status_of(given.to).st_ino != inode);
  }
  SECTION("an empty one") {
    GivenFile empty;
    empty.content.clear();
    empty.directory.write("from/file", "");
    CHECK(empty.fetch());
    CHECK(empty.is_whole());
  }
}

TEST_CASE("a file that keeps its owner is kept with a second name, too") {
  const GivenFile given;
  const auto fetch = [&] {
    return tree::fetch({given.from}, {.path = given.to, .guarded = true},
                       {sys::sha256(given.content), given.content.size()}, {}, {}, {}, tree::FileAttributes{});
  };
  REQUIRE(fetch());
  fs::create_hard_link(given.to, given.directory / "second");
  CHECK(fetch() == tree::FetchReport{0, given.content.size()});
}

TEST_CASE("a fetch goes on at its offset") {
  const GivenFile given;
  given.directory.write("to/.file.part", given.content.substr(0, 2'000'000));
  CHECK(given.fetch() == tree::FetchReport{given.content.size() - 1'998'848, 1'998'848});
  CHECK(given.is_whole());
  fs::remove(given.to);
  given.directory.write("to/.file.part", std::string(2'000'000, '\0')); // as a power cut leaves it
  CHECK(given.fetch() == tree::FetchReport{given.content.size(), 0});
  CHECK(given.is_whole());
  fs::remove(given.to);
  given.directory.write("to/.file.part", given.content + "more");
  CHECK(given.fetch()->kept > 3'000'000);
  CHECK(given.is_whole());
}

TEST_CASE("a file with another content than wanted is not fetched, and nothing is left of it") {
  const GivenFile given;
  const auto which = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2});
  const std::vector others{large_content('z'), given.content.substr(0, 1'000'000), given.content + "x"};
  given.directory.write("from/file", others[which]);
  const auto refused = given.fetch({.anew = "make it anew"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK(refused.error().message.starts_with(given.from + ": its content is not the one that is noted of it"));
  CHECK(refused.error().hint == "make it anew");
  CHECK(given.nothing_is_left());
  given.directory.write("from/file", given.content);
  CHECK(given.fetch());
  CHECK(given.is_whole());
}

TEST_CASE("what cannot be fetched") {
  const GivenFile given;
  SECTION("there is no original") {
    fs::remove(given.from);
    CHECK(given.fetch().error().code == ErrorCode::not_found);
  }
  SECTION("a link stands for it") {
    fs::rename(given.from, given.from + "2");
    fs::create_symlink("file2", given.from);
    CHECK_FALSE(given.fetch());
  }
  SECTION("there is no directory for it") {
    fs::remove(given.directory / "to");
    CHECK(given.fetch().error().code == ErrorCode::not_found);
  }
  SECTION("something else has the name of its part") {
    REQUIRE(::mkfifo(given.part.c_str(), 0600) == 0);
    CHECK(given.fetch({.anew = "make it anew"}).error().hint == "see what it is, and remove it");
  }
  SECTION("others could replace it") {
    fs::permissions(given.directory / "to", fs::perms::all);
    CHECK(given.fetch().error().code == ErrorCode::permission);
  }
}

TEST_CASE("another one that is at work is waited for a moment", "[waits]") {
  const GivenFile given;
  given.directory.write("to/.file.part", "");
  const int held = ::open(given.part.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  CHECK(given.fetch().error().code == ErrorCode::busy);
  const sys::Fd opened(::inotify_init1(IN_CLOEXEC));
  REQUIRE(::inotify_add_watch(opened.get(), given.part.c_str(), IN_OPEN) >= 0);
  const auto other = ::fork(); // which has the lock alone, and ends once the file is opened again
  if (other == 0) {
    std::array<char, 512> event{};
    ::_exit(::read(opened.get(), event.data(), event.size()) > 0 ? 0 : 1);
  }
  ::close(held);
  CHECK(given.fetch());
  int status = -1;
  CHECK(::waitpid(other, &status, 0) == other);
  CHECK(status == 0);
}

TEST_CASE("attack: the name of the part is given to a file that lies elsewhere") {
  const GivenFile given;
  given.directory.write("elsewhere", "of somebody else");
  fs::create_hard_link(given.directory / "elsewhere", given.part);
  CHECK(given.fetch());
  CHECK(given.is_whole());
  CHECK(given.directory.read("elsewhere") == "of somebody else");
  if (::geteuid() != 0)
    return;
  fs::remove(given.to);
  fs::create_hard_link(given.directory / "elsewhere", given.part);
  CHECK(given.fetch_for_another());
  CHECK(status_of(given.directory / "elsewhere").st_uid == 0);
  fs::remove(given.to);
  given.directory.write("elsewhere", given.content); // the right content, under the name of the file itself
  fs::create_hard_link(given.directory / "elsewhere", given.to);
  CHECK(given.fetch_for_another());
  CHECK(status_of(given.directory / "elsewhere").st_uid == 0);
}

TEST_CASE("who reads the original for root need not be root") {
  if (::geteuid() != 0)
    return;
  const GivenFile given;
  fs::permissions(given.directory.path(), fs::perms(0711));
  const sys::User nobody{"nobody", 65534, 65534, {65534}, "/"};
  REQUIRE(::chown((given.directory / "from").c_str(), nobody.uid, nobody.gid) == 0);
  fs::permissions(given.directory / "from", fs::perms(0700));
  CHECK(given.fetch({.reader = nobody})->bytes == given.content.size());
  CHECK(given.is_whole());
  CHECK(status_of(given.to).st_uid == 0);
  fs::remove(given.to);
  const sys::User other{"other", 65533, 65533, {65533}, "/"};
  fs::permissions(given.directory / "from", fs::perms(0700));
  CHECK(given.fetch({.reader = other})); // of this host's own disks CAP_DAC_OVERRIDE is enough
}

TEST_CASE("a fetch to a full disk leaves nothing on it") {
  const GivenFile given;
  const auto to = given.directory / "to";
  if (::mount("none", to.c_str(), "tmpfs", 0, "size=1m,mode=755") != 0)
    return; // not allowed here
  const auto refused = given.fetch();
  const bool nothing = given.nothing_is_left();
  ::umount(to.c_str());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().hint.starts_with("make room"));
  CHECK(nothing);
}

namespace {

/// Lets each such call of this process and its children fail.
bool fail_call(unsigned call, unsigned error) {
  std::array<sock_filter, 4> filter{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace

TEST_CASE("a part that did not get to the disk is not gone on with, for the page cache would say that it is right") {
  const GivenFile given;
  const pid_t caller = ::fork();
  if (caller == 0)
    ::_exit(fail_call(SYS_fsync, EIO) && !given.fetch() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(caller, &status, 0) == caller);
  CHECK(status == 0);
  CHECK(given.nothing_is_left());
}

TEST_CASE("SIGKILL at any step of a fetch, and the next one goes on", "[kill]") {
#ifdef SHAREFS_FAULT_INJECTION
  const GivenFile given;
  const bool of_another = GENERATE(false, true); // only root can give it away
  if (of_another && ::geteuid() != 0)
    return;
  const auto fetch = [&] { return of_another ? given.fetch_for_another() : given.fetch(); };
  std::size_t killed = 0;
  for (std::size_t step = 0; step < 20; ++step) {
    CAPTURE(step);
    const pid_t caller = ::fork();
    if (caller == 0) {
      ::setenv("SHAREFS_TEST_KILL_AT_TREE", std::to_string(step).c_str(), 1);
      ::_exit(fetch() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(caller, &status, 0) == caller);
    CHECK((!fs::exists(given.to) || given.directory.read("to/file") == given.content));
    if (status == 0)
      break;
    ++killed;
    const auto there = fs::exists(given.part) ? fs::file_size(given.part) : 0;
    const auto again = fetch();
    REQUIRE(again);
    if (there > 0)
      CHECK(again->kept == there - there % 4096);
    CHECK(given.is_whole());
    CHECK((!of_another || status_of(given.to).st_uid == 65533));
    fs::remove(given.to);
  }
  CHECK(killed == 7); // four pieces, before and behind fsync, behind the rename
#endif
}

namespace {

/// A program that prints the file from an offset on.
tree::Upstream prints(const std::string& path, const std::string& more = "") {
  return {.name = "node1", .argv = {"sh", "-c", more + "tail -c +$((1 + $1)) " + path, "sh"}, .as = {}};
}

} // namespace

TEST_CASE("a file is fetched from others, who are passed over where they are not enough") {
  const GivenFile given;
  const auto other = given.directory / "other";
  const auto fetch = [&](const std::vector<tree::Upstream>& upstreams) {
    return tree::fetch({given.from}, {.path = given.to}, {sys::sha256(given.content), given.content.size()}, {}, {},
                       upstreams);
  };
  const auto size = given.content.size();
  given.directory.write("other", given.content);
  SECTION("the first has it: the original is not asked") {
    fs::remove(given.from);
    CHECK(fetch({prints(other)}) == tree::FetchReport{size, 0, "node1", ""});
  }
  SECTION("the first has a part, the second the rest") {
    given.directory.write("less", given.content.substr(0, 2'000'000));
    fs::remove(given.from);
    const auto fetched = fetch({prints(given.directory / "less"), prints(other)});
    REQUIRE(fetched);
    CHECK(fetched->bytes == size);
    CHECK_FALSE(fetched->passed_over.empty());
  }
  SECTION("what an earlier run has left is kept") {
    given.directory.write("to/.file.part", given.content.substr(0, 1U << 20U));
    ::chmod(given.part.c_str(), 0600);
    CHECK(fetch({prints(other)}) == tree::FetchReport{size - (1U << 20U), 1U << 20U, "node1", ""});
  }
  SECTION("none has it: the original has") {
    const auto fetched =
        fetch({{"gone", {"sh", "-c", "echo no route to it >&2; exit 255", "sh"}, {}},
               {"ill", {"sh", "-c", "printf 'error: it cannot\\nhint: look\\n' >&2; exit 1", "sh"}, {}},
               {"no program", {"there-is-no-such-program"}, {}}});
    REQUIRE(fetched);
    CHECK(fetched->by.empty());
    CHECK(fetched->passed_over.starts_with("gone: no route to it; ill: it cannot; no program: "));
  }
  SECTION("another content, shorter or longer, is not taken") {
    for (const auto& wrong : {large_content('z'), large_content('z') + "more", std::string("short")}) {
      given.directory.write("other", wrong);
      const auto fetched = fetch({prints(other)});
      REQUIRE(fetched);
      CHECK(fetched->by.empty());
      CHECK(fetched->passed_over.find(given.from) == std::string::npos); // it is not the original that was wrong
      CHECK(given.is_whole());
      fs::remove(given.to);
    }
    CHECK(fetch({}));
  }
  CHECK(given.is_whole());
}

TEST_CASE("another one that sends a byte now and then is passed over", "[waits]") {
  const GivenFile given;
  const std::vector<tree::Upstream> upstreams{{"node1", {"sh", "-c", "while printf x; do sleep 0.1; done", "sh"}, {}}};
  const auto fetched = tree::fetch({given.from}, {.path = given.to}, {sys::sha256(given.content), given.content.size()},
                                   {.deadline = std::chrono::seconds(6)}, {}, upstreams);
  REQUIRE(fetched);
  CHECK(fetched->by.empty());
  CHECK(fetched->passed_over == "node1: has sent nothing, or next to nothing, for 1.0 s");
  CHECK(given.is_whole());
}

TEST_CASE("another one that sends little is passed over, but not where the limit allows no more", "[waits]") {
  const GivenFile given;
  given.directory.write("other", given.content);
  const auto fetch = [&](const std::string& blocks, std::uint64_t limit) {
    const auto script = "tail -c +$(($1 + 1)) " + given.directory / "other" + " | while dd bs=" + blocks +
                        " count=1 iflag=fullblock 2>/dev/null; do sleep 0.4; done";
    return tree::fetch({given.from}, {.path = given.to}, {sys::sha256(given.content), given.content.size()},
                       {.deadline = std::chrono::seconds(6), .bytes_per_second = limit}, {},
                       {{"node1", {"sh", "-c", script, "sh"}, {}}});
  };
  SECTION("40 KiB a second") {
    const auto fetched = fetch("16384", 0);
    REQUIRE(fetched);
    CHECK(fetched->by.empty());
    CHECK(fetched->passed_over == "node1: has sent nothing, or next to nothing, for 1.0 s");
  }
  SECTION("20 KiB a second, with a limit of as much") {
    given.directory.write("to/.file.part", given.content.substr(0, given.content.size() / 4096 * 4096 - 65536));
    ::chmod(given.part.c_str(), 0600);
    fs::remove(given.from);
    const auto fetched = fetch("8192", 20'000);
    REQUIRE(fetched);
    CHECK(fetched->by == "node1");
  }
  CHECK(given.is_whole());
}

TEST_CASE("others are not asked in turn for a file that this host has no room for") {
  const GivenFile given;
  given.directory.write("other", given.content);
  const auto asked = given.directory / "asked";
  const auto upstream = prints(given.directory / "other", "echo >>" + asked + "; ");
  const pid_t caller = ::fork();
  if (caller == 0) {
    const auto refused =
        fail_call(SYS_pwrite64, EDQUOT)
            ? tree::fetch({given.from}, {.path = given.to}, {sys::sha256(given.content), given.content.size()}, {}, {},
                          {upstream, upstream})
            : tree::FetchReport{};
    ::_exit(!refused && refused.error().hint.starts_with("make room") ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(caller, &status, 0) == caller);
  CHECK(status == 0);
  CHECK(given.directory.read("asked") == "\n");
  CHECK(given.nothing_is_left());
}

TEST_CASE("a tree of few files is listed, and each comes with its mode, time and owner") {
  const GivenFile given;
  fs::create_directory(given.directory / "from/more");
  given.directory.write("from/more/b", "b");
  fs::create_symlink("more/b", given.directory / "from/link");
  ::chmod(given.from.c_str(), 0640);
  const timespec then[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, given.from.c_str(), then, 0);
  const auto listing = tree::list_contents({given.directory / "from"}, {});
  REQUIRE(listing);
  std::vector<std::string> paths;
  for (const auto& one : listing->entries)
    paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"", "file", "link", "more", "more/b"});
  CHECK(listing->entries[0].mode == status_of(given.directory / "from").st_mode);
  CHECK(listing->entries[2].target == "more/b");
  const auto& file = listing->entries[1];
  CHECK(file.sha256 == sys::sha256(given.content));
  for (const auto* now : {"new", "kept"}) {
    const auto fetched = tree::fetch({given.from}, {.path = given.to}, {file.sha256, file.bytes}, {}, {}, {},
                                     tree::FileAttributes{.mode = file.mode, .mtime = file.mtime});
    REQUIRE(fetched);
    CHECK((fetched->kept > 0) == (now == std::string("kept")));
    CHECK((status_of(given.to).st_mode & 07777U) == 0640);
    CHECK(status_of(given.to).st_mtime == 1000);
  }
  ::mkfifo((given.directory / "from/fifo").c_str(), 0600);
  CHECK(tree::list_contents({given.directory / "from"}, {}).error().code == ErrorCode::unsupported);
}

TEST_CASE("a file is served while it comes", "[waits]") {
  const GivenFile given;
  const auto size = given.content.size();
  const auto half = given.content.substr(0, size / 2);
  sys::Pipe pipe;
  REQUIRE(pipe.open());
  given.directory.write("to/.file.part", half);
  std::string got;
  std::thread reader([&] {
    std::array<char, 65536> bytes{};
    for (ssize_t count = 0; (count = ::read(pipe.read.get(), bytes.data(), bytes.size())) > 0;) {
      got.append(bytes.data(), static_cast<std::size_t>(count));
      if (got.size() == half.size() - 10) { // all that was there: the rest comes now, under its own name
        std::ofstream(given.part, std::ios::app) << given.content.substr(size / 2);
        fs::rename(given.part, given.to);
      }
    }
  });
  const auto served = tree::serve({given.to}, size, 10, pipe.write.get(), std::chrono::seconds(20));
  pipe.write.reset();
  reader.join();
  REQUIRE(served);
  CHECK(got == given.content.substr(10));
  using namespace std::chrono_literals;
  CHECK(tree::serve({given.to}, size + 1, size, 1, 50ms).error().code == ErrorCode::timeout);
  CHECK(tree::serve({given.directory / "to/none"}, 1, 0, 1, 50ms).error().code == ErrorCode::not_found);
}

TEST_CASE("a file system without locks is named, and no other command is looked for") {
  const GivenFile given;
  const auto child = ::fork();
  if (child == 0) {
    const bool fails = fail_call(SYS_flock, ENOLCK);
    const auto fetched = given.fetch();
    ::_exit(fails && !fetched && fetched.error().code == ErrorCode::failed &&
                    fetched.error().message.find(errno_text(ENOLCK)) != std::string::npos
                ? 0
                : 1);
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

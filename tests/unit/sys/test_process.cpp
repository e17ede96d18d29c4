#include "sys/programs/process.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

Command shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  return command;
}

constexpr auto k_enough = 30s; ///< a deadline that never comes: the work ends

/// Asks every 5 ms, for at most 30 s.
bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i)
    std::this_thread::sleep_for(5ms);
  return condition();
}

std::size_t open_descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// True while some process has `text` among its arguments.
bool runs(const std::string& text) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const Fd file(::open((entry.path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    std::string words;
    if (file && read_all(file.get(), words, 65536) == 0 && words.find(text) != std::string::npos)
      return true;
  }
  return false;
}

} // namespace

TEST_CASE("a process hands back its output and exit code") {
  struct Row {
    const char* script;
    int exit_code;
    const char* out;
    const char* err;
  };
  const Row row = GENERATE(Row{"echo out; echo err >&2", 0, "out\n", "err\n"}, Row{"exit 7", 7, "", ""},
                           Row{"exit 255", 255, "", ""}, Row{"kill -TERM $$", 128 + 15, "", ""},
                           Row{"printf 'a\\000b'; printf x >&2", 0, "a", "x"}, Row{"cat", 0, "", ""});
  INFO(row.script);
  const auto done = run_process(shell(row.script));
  REQUIRE(done);
  CHECK(done->exit_code == row.exit_code);
  CHECK_FALSE(done->timed_out);
  CHECK(done->ok() == (row.exit_code == 0));
  CHECK(done->out.substr(0, std::string(row.out).size()) == row.out);
  CHECK(done->err == row.err);
}

TEST_CASE("zero bytes are kept") {
  const auto done = run_process(shell("printf 'a\\000b'"));
  REQUIRE(done);
  CHECK(done->out == std::string("a\0b", 3));
}

TEST_CASE("a program that cannot be started is an error of the call") {
  const test::TemporaryDirectory directory;
  directory.write("text", "#! /nonexistent\n");
  ::chmod((directory / "text").c_str(), 0644);
  Command command;
  SECTION("not in PATH") {
    command.argv = {"no-such-program-of-sharefs"};
    const auto done = run_process(command);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::not_found);
    CHECK(done.error().message == "`no-such-program-of-sharefs` is not installed");
  }
  SECTION("no such path") {
    command.argv = {directory / "missing"};
    CHECK(run_process(command).error().code == ErrorCode::not_found);
  }
  SECTION("not executable") {
    command.argv = {directory / "text"};
    CHECK(run_process(command).error().code == ErrorCode::permission);
  }
  SECTION("a file without #! is not given to a shell") {
    directory.write("script", "echo hello\n");
    ::chmod((directory / "script").c_str(), 0755);
    command.argv = {directory / "script"};
    CHECK(run_process(command).error().code == ErrorCode::failed);
  }
  SECTION("no directory") {
    command.argv = {"true"};
    command.directory = directory / "missing";
    const auto done = run_process(command);
    REQUIRE_FALSE(done);
    CHECK(done.error().message.find(command.directory) != std::string::npos);
  }
  SECTION("nothing") {
    CHECK_FALSE(run_process(command));
  }
}

TEST_CASE("standard input is the given text, or empty") {
  Command command = shell("cat; test -t 0 || echo .");
  CHECK(run_process(command)->out == ".\n");
  command.input = std::string(300'000, 'x'); // more than a pipe holds
  command.argv = {"wc", "-c"};
  CHECK(std::stoi(run_process(command)->out) == 300'000);
  command.argv = {"true"}; // reads none of it: no SIGPIPE, no error
  CHECK(run_process(command)->ok());
}

TEST_CASE("output above the limit is thrown away, and the child still ends") {
  Command command = shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end >&2; exit 3");
  command.output_limit = 1000;
  const auto done = run_process(command);
  REQUIRE(done);
  CHECK(done->exit_code == 3);
  CHECK(done->out.size() == 1000);
  CHECK(done->err.size() == 1000);
}

TEST_CASE("environment and directory") {
  ::setenv("SHAREFS_TEST_OLD", "old", 1);
  ::setenv("SHAREFS_TEST_BOTH", "old", 1);
  Command command = shell("echo $SHAREFS_TEST_OLD $SHAREFS_TEST_BOTH $SHAREFS_TEST_NEW; pwd");
  command.environment = {{"SHAREFS_TEST_BOTH", "new"}, {"SHAREFS_TEST_NEW", "new"}};
  command.directory = "/usr";
  CHECK(run_process(command)->out == "old new new\n/usr\n");
  ::unsetenv("SHAREFS_TEST_OLD");
  ::unsetenv("SHAREFS_TEST_BOTH");
}

TEST_CASE("programs are the system's own") {
  const test::TemporaryDirectory directory;
  directory.write("mytool", "#!/bin/sh\necho mine\n");
  directory.write("chroot", "#!/bin/sh\necho planted\n");
  ::chmod((directory / "mytool").c_str(), 0755);
  ::chmod((directory / "chroot").c_str(), 0755);
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", ("relative::" + directory.path() + ":" + before).c_str(), 1);
  Command command;
  command.argv = {"mytool"};
  CHECK_FALSE(run_process(command));
  command.argv = {"chroot", "--version"};
  CHECK(run_process(command)->out.starts_with("chroot (GNU coreutils)"));
  command.argv = {"sh", "-c", "echo $PATH"};
  CHECK(run_process(command)->out == "/usr/sbin:/usr/bin:/sbin:/bin\n");
  ::setenv("PATH", before.c_str(), 1);
}

TEST_CASE("what brings code of other directories does not reach a program of the system") {
  const std::pair<const char*, const char*> given[] = {{"PYTHONPATH", "/planted"},
                                                       {"PYTHONSTARTUP", "/planted"},
                                                       {"BASH_ENV", "/planted"},
                                                       {"PYTHONHOME", "/planted"},
                                                       {"RSYNC_RSH", "/planted"}};
  for (const auto& [name, value] : given)
    ::setenv(name, value, 1);
  Command command;
  command.argv = {"env"};
  const std::string of_system = run_process(command)->out;
  command.argv = {"/usr/bin/env"}; // a program by its path gets what its caller has
  const std::string other = run_process(command)->out;
  for (const auto& [name, value] : given)
    ::unsetenv(name);
  CHECK(of_system.find("planted") == std::string::npos);
  CHECK(of_system.find("HOME=") != std::string::npos);
  CHECK(other.find("PYTHONPATH=/planted") != std::string::npos);
}

TEST_CASE("attack: a tree is handed on as it was found, and links of others lead neither to it nor out of it") {
  if (::geteuid() != 0)
    return;
  const test::TemporaryDirectory directory;
  directory.write("code/pkg/file", "own");
  directory.write("secret/file", "secret");
  Command command = shell("mv \"$1\" \"$1.was\"; cat $0/pkg/file; mv \"$1.was/pkg\" \"$1.was/p\"; "
                          "ln -s \"$2\" \"$1.was/pkg\"; cat $0/pkg/file; readlink $0/pkg");
  command.argv.insert(command.argv.end(), {k_handed_on, directory / "code", directory / "secret"});
  command.tree = directory / "code";
  const auto ended = run_process(command);
  REQUIRE(ended);
  CHECK(ended->out == "own" + (directory / "secret") + "\n");
  CHECK(run_process(command).error().code == ErrorCode::conflict); // it has gone
  std::filesystem::create_directory_symlink(directory / "secret", directory / "code");
  REQUIRE(::lchown((directory / "code").c_str(), 65534, 65534) == 0);
  CHECK(run_process(command).error().code == ErrorCode::permission);
}

TEST_CASE("at the deadline the whole process group is killed", "[waits]") {
  const std::string mark = "3141." + std::to_string(::getpid());
  Command command = shell("echo begin; sleep " + mark + " & sleep " + mark);
  command.deadline = 1s; // it has to have said something by then
  const auto done = run_process(command);
  REQUIRE(done);
  CHECK(done->timed_out);
  CHECK_FALSE(done->ok());
  CHECK(done->exit_code == 128 + SIGKILL);
  CHECK(done->out == "begin\n");
  CHECK(becomes_true([&] { return !runs(mark); })); // the other sleep is init's to reap
}

TEST_CASE("a child that ignores SIGTERM and closes its streams is still killed", "[waits]") {
  Command command = shell("trap '' TERM INT HUP; exec >&- 2>&-; while :; do sleep 1; done");
  command.deadline = 100ms;
  CHECK(run_process(command)->timed_out);
}

TEST_CASE("a program that ends with us ends when we are killed", "[fork][kill]") {
  const std::string mark = "90." + std::to_string(::getpid());
  Command command = shell("exec sleep " + mark);
  command.deadline = 1h;
  command.ends_with_us = true;
  auto parent = Child::fork([&] { (void)run_process(command); });
  REQUIRE(parent);
  REQUIRE(becomes_true([&] { return runs(mark); }));
  parent->kill_and_reap();
  CHECK(becomes_true([&] { return !runs(mark); }));
}

TEST_CASE("a daemon that keeps the streams open is neither waited for nor killed", "[waits]") {
  const test::TemporaryDirectory directory;
  const std::string gate = directory / "gate", lives = directory / "lives";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  Command command = shell("(read word <" + gate + "; touch " + lives + ") & echo started");
  command.deadline = k_enough;
  const auto done = run_process(command); // the daemon waits for a word that comes only behind this line
  REQUIRE(done);
  CHECK(done->ok());
  CHECK(done->out == "started\n");
  std::ofstream(gate) << "go\n";
  CHECK(becomes_true([&] { return std::filesystem::exists(lives); }));
}

TEST_CASE("the child starts with default signals, an own process group and no foreign descriptors") {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto status = run_process(shell("grep -E '^Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd | wc -l"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  REQUIRE(status);
  // ls itself opens the fourth.
  CHECK(status->out == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n4\n");
  const auto group = run_process(shell("ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat"));
  REQUIRE(group);
  CHECK(std::stoi(group->out) != ::getpgrp());
}

TEST_CASE("many threads run processes at the same time without leaking descriptors", "[fork]") {
  const std::size_t before = open_descriptors();
  std::vector<std::thread> threads;
  std::array<int, 8> good{};
  for (std::size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&good, t] {
      for (int i = 0; i < 5; ++i) {
        const std::string text = std::to_string(t) + "-" + std::to_string(i);
        const auto ran = run_process(shell("echo " + text));
        const auto worked = call(std::nullopt, k_enough, [&] { return Result<std::string>(text); });
        good[t] += ran && ran->out == text + "\n" && worked && *worked == text ? 1 : 0;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(good == std::array<int, 8>{5, 5, 5, 5, 5, 5, 5, 5});
  CHECK(open_descriptors() == before);
}

TEST_CASE("a parent that was started with SIGCHLD ignored still gets exit codes") {
  ::signal(SIGCHLD, SIG_IGN);
  CHECK(run_process(shell("exit 5"))->exit_code == 5);
  ::signal(SIGCHLD, SIG_DFL);
}

TEST_CASE("a program that takes the place of this process finds SIGCHLD ignored, as this process was started") {
  Pipe pipe;
  REQUIRE(pipe.open());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGCHLD, SIG_IGN);
    static_cast<void>(run_process(shell("exit 5")));
    ::dup2(pipe.write.get(), 1);
    exec_process({"grep", "SigIgn", "/proc/self/status"}, {"PATH=/usr/bin:/bin"});
    ::_exit(1);
  }
  pipe.write.reset();
  std::string said;
  read_all(pipe.read.get(), said);
  ::waitpid(child, nullptr, 0);
  CAPTURE(said);
  const auto ignored = std::stoull(said.substr(said.find('\t')), nullptr, 16);
  CHECK((ignored & (1ULL << (SIGCHLD - 1))) != 0);
}

TEST_CASE("a process can run as another user") {
  Command command = shell("id -u; id -g; id -G; echo $HOME $USER");
  command.as = test::nobody();
  const auto done = run_process(command);
  if (::geteuid() != 0) {
    CHECK(done.error().code == ErrorCode::permission);
    return;
  }
  REQUIRE(done);
  CHECK(done->out == "65534\n65534\n65534\n/nonexistent nobody\n");
}

TEST_CASE("what works for sharefs ends with it, also as another user") {
  const bool as_another = GENERATE(false, true) && ::geteuid() == 0;
  const test::TemporaryDirectory directory;
  const auto note = directory / "pid";
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); // the child that is left behind becomes ours
  const pid_t sharefs = ::fork();
  if (sharefs == 0) {
    std::ignore = call(std::nullopt, k_enough, [&]() -> Result<void> {
      std::ofstream said(note);
      if (as_another && become(test::nobody()) != 0)
        return {};
      ::alarm(60);
      said << ::getpid() << std::endl;
      for (;;)
        ::pause();
    });
    ::_exit(0);
  }
  pid_t child = 0;
  REQUIRE(becomes_true([&] { return static_cast<bool>(std::ifstream(note) >> child); }));
  ::kill(sharefs, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(sharefs, &status, 0) == sharefs);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("call hands back bytes and errors") {
  const std::string bytes("a\0b\xff", 4);
  CHECK(call(std::nullopt, k_enough, [&] { return Result<std::string>(bytes); }) == bytes);
  const std::string large(5'000'000, 'x'); // more than a pipe holds
  CHECK(call(std::nullopt, k_enough, [&] { return Result<std::string>(large); }) == large);
  const Error error{ErrorCode::conflict, "message", "hint", "context\nmore"};
  const auto failed = call(std::nullopt, k_enough, [&]() -> Result<std::string> { return fail(error); });
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == error);
}

TEST_CASE("call does not change this process") {
  int changed = 0;
  CHECK(call(std::nullopt, k_enough, [&]() -> Result<std::string> {
    changed = 1;
    return std::string();
  }));
  CHECK(changed == 0);
}

TEST_CASE("work that does not end, crashes or throws is an error", "[waits]") {
  Result<std::string> result = call(std::nullopt, 100ms, []() -> Result<std::string> {
    for (;;)
      ::pause();
  });
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::timeout);
  CHECK(result.error().message == "no answer within " + format_duration(100'000));

  result = call(std::nullopt, k_enough, []() -> Result<std::string> { throw std::runtime_error("oops"); });
  CHECK(result.error().message == "oops");
  result = call(std::nullopt, k_enough, []() -> Result<std::string> {
    ::raise(SIGKILL);
    return std::string();
  });
  CHECK(result.error().message == "the child process was ended by signal 9");
  result = call(std::nullopt, k_enough, []() -> Result<std::string> { ::_exit(4); });
  CHECK(result.error().message == "the child process ended with code 4");
  result = call(std::nullopt, k_enough, []() -> Result<std::string> { ::_exit(0); });
  CHECK(result.error().code == ErrorCode::failed);
}

TEST_CASE("work that the caller gives up is ended long before its deadline") {
  const auto result =
      call(std::nullopt, 1h, []() -> Result<std::string> { return std::to_string(::pause()); }, [] { return true; });
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::interrupted);
}

TEST_CASE("call sees no descriptor of the parent") {
  const auto names = call(std::nullopt, k_enough, []() -> Result<std::string> {
    std::string text;
    for (int fd = 0; fd < 1024; ++fd)
      if (::fcntl(fd, F_GETFD) >= 0)
        text += std::to_string(fd) + " ";
    return text;
  });
  CHECK(names == "0 1 2 3 ");
}

TEST_CASE("call works as another user") {
  const auto ids = call(test::nobody(), k_enough, []() -> Result<std::string> {
    return std::to_string(::getuid()) + " " + std::to_string(::getegid()) + " " +
           std::to_string(::getgroups(0, nullptr)) + (::setuid(0) == 0 ? " root again" : "");
  });
  if (::geteuid() != 0) {
    CHECK(ids.error().code == ErrorCode::permission);
    return;
  }
  CHECK(ids == "65534 65534 1");
}

TEST_CASE("who is not root keeps the groups that he has", "[process]") {
  if (::geteuid() != 0)
    return;
  // A directory's set-group-id bit gives files a group in which their owner need not be.
  const auto group = call(test::nobody(), k_enough, []() -> Result<std::string> {
    auto command = shell("id -g");
    command.as = User{"nobody", 65534, 100, {100}, "/"};
    const auto done = run_process(command);
    return done ? Result<std::string>(done->out) : fail(done.error());
  });
  REQUIRE(group);
  CHECK(*group == "65534\n");
}

TEST_CASE("exec_process replaces the process, or says why not") {
  CHECK(exec_process({"no-such-program-of-sharefs"}, {"PATH=/usr/bin"}).code == ErrorCode::not_found);
  const Error assignment = exec_process({"NAME=/some/value", "true"}, {"PATH=/usr/bin"});
  CHECK(assignment.code == ErrorCode::not_found);
  CHECK(assignment.hint ==
        "write `env NAME=/some/value` in front of the command, or the variable in front of `sharefs`");
  CHECK(exec_process({"/etc/passwd"}, {}).code == ErrorCode::permission);
  CHECK(exec_process({"/nonexistent/x"}, {}).code == ErrorCode::not_found);
  CHECK(exec_process({}, {}).code == ErrorCode::failed);
  CHECK(std::getenv("PATH") != nullptr);
  // In a child, whose streams are closed: the new program proves itself by its exit code.
  const auto replaced = call(std::nullopt, k_enough, []() -> Result<std::string> {
    return fail(exec_process({"sh", "-c", "test \"$A\" = b && exit 42"}, {"A=b", "PATH=/usr/bin:/bin"}));
  });
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().message == "the child process ended with code 42");
}

TEST_CASE("nobody reads a pipe or a socket whose other end is closed; a file that is full has no other end") {
  std::array<int, 2> ends{};
  const auto before_and_after = [&] {
    const bool before = nobody_reads(ends[1]);
    ::close(ends[0]);
    const std::pair found{before, nobody_reads(ends[1])};
    ::close(ends[1]);
    return found;
  };
  REQUIRE(::pipe(ends.data()) == 0);
  CHECK(before_and_after() == std::pair{false, true});
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  CHECK(before_and_after() == std::pair{false, true});
  const int full = ::open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  CHECK(::write(full, "x", 1) < 0);
  CHECK_FALSE(nobody_reads(full));
  ::close(full);
}

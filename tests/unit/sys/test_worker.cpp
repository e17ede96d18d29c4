// A worker has nothing of root's: attacks by the program that it runs, and honest use beside them.
#include "sys/worker/worker.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/users.hpp"
#include "sys/process/child.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

/// Said, and nothing tested, where the tests are not root's.
bool is_root() {
  if (::geteuid() == 0)
    return true;
  WARN("not root: nothing is tested");
  return false;
}

WorkerRequest shell(const std::string& script) {
  return {.user = test::nobody(),
          .words = {"-c", script},
          .environment = {},
          .directory = "/",
          .config = {},
          .program = "/bin/sh"};
}

int exit_code(const Result<int>& result) {
  return result ? *result : 99;
}

/// Exit code and output of a worker whose streams are files: "7 text".
std::string run(const WorkerRequest& request, const std::function<void()>& before = [] {}) {
  const Fd output(::memfd_create("output", 0));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(output.get(), 1);
    ::dup2(output.get(), 2);
    before();
    ::_exit(exit_code(run_worker(request)));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::string text;
  ::lseek(output.get(), 0, SEEK_SET);
  read_all(output.get(), text);
  return fmt::format("{} {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1, text);
}

/// A person at a terminal, in which a process of root's session runs a worker.
class Person {
 public:
  explicit Person(const WorkerRequest& request, const std::function<void(int)>& afterwards = [](int) {}) {
    m_master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(::grantpt(m_master.get()) == 0);
    REQUIRE(::unlockpt(m_master.get()) == 0);
    m_pid = ::fork();
    if (m_pid == 0) {
      ::setsid();
      const int slave = ::open(::ptsname(m_master.get()), O_RDWR); // becomes the controlling terminal
      m_master.reset();                                            // or the terminal would never be gone
      for (const int stream : {0, 1, 2})
        ::dup2(slave, stream);
      const int code = exit_code(run_worker(request));
      afterwards(slave);
      ::_exit(code);
    }
  }
  void go_away() { m_master.reset(); }
  void type(std::string_view keys) const { write_all(m_master.get(), keys); }
  /// What is on the screen, once `text` has come.
  std::string wait_for(const std::string& text) {
    const auto end = deadline_in(30s);
    while (m_screen.find(text) == std::string::npos && Clock::now() < end && read_some(100ms)) {
    }
    return m_screen;
  }
  /// Exit code, and all that was on the screen.
  std::string end() {
    const auto late = deadline_in(30s);
    int status = -1;
    while (::waitpid(m_pid, &status, WNOHANG) == 0 && Clock::now() < late)
      read_some(20ms);
    while (m_master && read_some(20ms)) {
    }
    if (status == -1) {
      ::kill(m_pid, SIGKILL);
      return "it has not ended: " + m_screen;
    }
    return fmt::format("{} {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1, m_screen);
  }

 private:
  bool read_some(std::chrono::milliseconds patience) {
    pollfd wait{m_master.get(), POLLIN, 0};
    std::array<char, 4096> buffer;
    if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0)
      return true;
    const auto count = ::read(m_master.get(), buffer.data(), buffer.size());
    if (count > 0)
      m_screen.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
  }
  Fd m_master;
  pid_t m_pid = -1;
  std::string m_screen;
};

const std::string k_python = "exec /usr/bin/python3 -c '{}'";

} // namespace

TEST_CASE("a worker's exit code and output are those of its program", "[worker]") {
  if (!is_root())
    return;
  CHECK(run(shell("echo out; echo err >&2; id -u; exit 7")) == "7 out\nerr\n65534\n");
  CHECK(run(shell("kill -KILL $$")) == "137 ");
}

TEST_CASE("attack: a worker looks for root's variables, descriptors, session and directory", "[worker]") {
  if (!is_root())
    return;
  const test::TemporaryDirectory closed; // 0700
  const auto before = [&] {
    ::setenv("HF_TOKEN", "secret", 1);
    ::setenv("HTTPS_PROXY", "http://root:secret@proxy:3128", 1);
    ::setenv("https_proxy", "http://proxy:3128", 1);
    REQUIRE(::chdir(closed.path().c_str()) == 0);
    [[maybe_unused]] const int left = ::open((closed / "log").c_str(), O_RDWR | O_CREAT, 0600); // no O_CLOEXEC
  };
  auto request = shell("env | sort");
  const auto said = run(request, before);
  CHECK(said.find("secret") == std::string::npos);
  CHECK(said.find("https_proxy=http://proxy:3128") != std::string::npos);
  CHECK(said.find("USER=nobody") != std::string::npos);
  request = shell("ls /proc/self/fd | wc -l; pwd; [ \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ ] && echo own session; "
                  "readlink /proc/$$/fd/1 | cut -d: -f1; grep -c 'Cap[IPEA].*:.0*$' /proc/$$/status");
  request.directory = closed.path();
  CHECK(run(request, before) == "0 4\n/\nown session\npipe\n4\n"); // the fourth descriptor is that of ls itself
}

TEST_CASE("attack: a user reads or traces a process that works for the user, and holds root's memory", "[worker]") {
  if (!is_root())
    return;
  auto child = WorkingChild::start(test::nobody(), [](int fd) {
    write_all(fd, "ready");
    ::pause();
  });
  REQUIRE(child);
  while (child->result() != "ready" && child->drain())
    ::poll(nullptr, 0, 1);
  const auto attack = run(shell(fmt::format("cat /proc/{0}/environ /proc/{0}/mem 2>/dev/null | wc -c; "
                                            "ls /proc/{0}/fd 2>/dev/null | wc -l; kill -0 {0} && echo is ours",
                                            child->process().pid())));
  CHECK(attack == "0 0\n0\nis ours\n");
  child->process().kill_and_reap();
}

TEST_CASE("a worker is given what root's input is, and root's shell reads on behind it", "[worker]") {
  if (!is_root())
    return;
  const test::TemporaryDirectory directory;
  directory.write("lines", "one\ntwo\n");
  const auto from_file = [&] { ::dup2(::open((directory / "lines").c_str(), O_RDONLY), 0); };
  CHECK(run(shell("cat"), from_file) == "0 one\ntwo\n");
  const auto from_both_ways = [&] { ::dup2(::open((directory / "lines").c_str(), O_RDWR), 0); };
  CHECK(run(shell("cat; readlink /proc/self/fd/0 | cut -d: -f1"), from_both_ways) == "0 one\ntwo\npipe\n");
}

TEST_CASE("attack: a worker types into the terminal that root uses", "[worker][waits]") {
  if (!is_root())
    return;
  const auto typed_line = [](int slave) {
    pollfd input{slave, POLLIN, 0};
    const bool typed = ::poll(&input, 1, 300) > 0;
    write_all(1, typed ? "typed into root's terminal" : "nothing typed");
  };
  Person person(shell(fmt::format(fmt::runtime(k_python), "import fcntl, os, termios\n"
                                                          "for fd in (0, os.open(\"/dev/tty\", os.O_RDWR)):\n"
                                                          "  for c in b\"id\\n\":\n"
                                                          "    fcntl.ioctl(fd, termios.TIOCSTI, bytes([c]))\n"
                                                          "print(\"tried\", flush=True)")),
                typed_line);
  const auto screen = person.end();
  CHECK(screen.starts_with("0 "));
  CHECK(screen.find("nothing typed") != std::string::npos);
  CHECK(screen.find("tried") != std::string::npos);
}

TEST_CASE("a person sees and answers a worker as if there were none", "[worker]") {
  if (!is_root())
    return;
  Person person(shell("stty size >/dev/null; printf 'Proceed? '; read answer; echo \"said $answer\"; tty; exit 3"));
  REQUIRE(person.wait_for("Proceed? ").find("Proceed? ") != std::string::npos);
  person.type("yes\r");
  const auto screen = person.end();
  CHECK(screen.starts_with("3 "));
  CHECK(screen.find("said yes") != std::string::npos);
  CHECK(screen.find("/dev/pts/") != std::string::npos);
}

TEST_CASE("Ctrl-C goes to the worker, and a third one ends one that does not listen", "[worker]") {
  if (!is_root())
    return;
  Person person(shell("trap 'echo heard; exit 5' INT; echo ready; while :; do sleep 0.05; done"));
  person.wait_for("ready");
  person.type("\x03");
  CHECK(person.end().find("heard") != std::string::npos);
  Person deaf(shell("trap '' INT; echo ready; while :; do sleep 0.05; done"));
  deaf.wait_for("ready");
  deaf.type("\x03\x03\x03");
  CHECK(deaf.end().starts_with("137 "));
}

TEST_CASE("a worker that asks somebody whose terminal is gone ends", "[worker]") {
  if (!is_root())
    return;
  Person person(shell("echo ready; read answer; exit 3"));
  person.wait_for("ready");
  person.go_away();
  const std::string ended = person.end();
  INFO(ended);
  CHECK(ended.starts_with("129 ")); // the worker, by SIGHUP
}

TEST_CASE("a user namespace that root has made has the user's groups, and none can be given up in it", "[worker]") {
  if (!is_root())
    return;
  auto user = test::nobody();
  user.groups.push_back(12345);
  const auto made = make_user_namespace(user);
  if (!made) {
    WARN("no user namespaces here: " + made.error().message);
    return;
  }
  const auto maps = test::as_user(user, [&]() -> std::string {
    if (::setns(made->get(), CLONE_NEWUSER) != 0)
      return errno_text(errno);
    std::string text;
    for (const auto* file : {"/proc/self/uid_map", "/proc/self/gid_map", "/proc/self/setgroups"})
      read_all(Fd(::open(file, O_RDONLY | O_CLOEXEC)).get(), text);
    std::erase(text, ' ');
    return text;
  });
  CHECK(maps == "65534655341\n65534655341\n12345123451\ndeny\n");
}

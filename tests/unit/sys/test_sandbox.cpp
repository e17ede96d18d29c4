#include "sys/process/sandbox.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"
#include "sys/process/child.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

struct Ending {
  int code = -1; ///< 128 + n for a signal n
  std::string text;
};

Ending run(const std::function<std::string()>& work) {
  auto child = WorkingChild::start(std::nullopt, [&](int fd) { write_all(fd, work()); });
  REQUIRE(child);
  child->drain_until(deadline_in(20s));
  const std::string text(child->result());
  (void)child->finish();
  return {child->process().exit_code(), text};
}

/// `work` behind both walls; "ok" where it came back.
Ending run_walled(const std::function<void()>& work) {
  return run([&]() -> std::string {
    if (drop_privileges() != 0 || restrict_to_network() != 0)
      return "no sandbox";
    work();
    return "ok";
  });
}

std::string line_of_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return std::string(trim(line.substr(name.size() + 1)));
  return "";
}

} // namespace

TEST_CASE("privileges are gone: ids, groups, capabilities, and the way back") {
  const Ending ending = run([] {
    const int error = drop_privileges();
    std::ostringstream text;
    text << error;
    for (const char* name : {"Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapInh", "NoNewPrivs"})
      text << "|" << line_of_status(name);
    text << "|" << ::setuid(0) << ::seteuid(0);
    return text.str();
  });
  const std::string none = "0000000000000000";
  if (::geteuid() == 0)
    CHECK(ending.text ==
          "0|65534\t65534\t65534\t65534|65534\t65534\t65534\t65534||" + none + "|" + none + "|" + none + "|1|-1-1");
  else
    CHECK(ending.text.find(none + "|" + none + "|" + none + "|1|-1") != std::string::npos);
}

TEST_CASE("what a child needs to ask a server is allowed") {
  const Ending ending = run_walled([] {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(1);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::close(fd);
    std::string some(10U << 20U, 'x');
    some.append(some);
    timespec now{};
    timeval seconds{};
    for (const long call : {SYS_getpid, SYS_getuid, SYS_getgid})
      ::syscall(call);
    ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    ::syscall(SYS_gettimeofday, &seconds, nullptr);
#ifdef SYS_time
    ::syscall(SYS_time, nullptr);
#endif
  });
  CHECK(ending.text == "ok");
  CHECK(ending.code == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("everything else ends the child") {
  struct Row {
    const char* name;
    std::function<void()> work;
  };
  const Row row = GENERATE(
      Row{"reading a file", [] { (void)::open("/etc/passwd", O_RDONLY); }},
      Row{"a program", [] { ::execl("/bin/true", "true", nullptr); }}, Row{"a process", [] { (void)::fork(); }},
      Row{"a thread", [] { std::thread([] {}).join(); }}, Row{"a signal", [] { ::kill(::getppid(), 0); }},
      Row{"UDP", [] { (void)::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }},
      Row{"a local socket", [] { (void)::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }},
      Row{"listening", [] { ::listen(3, 1); }}, Row{"a directory", [] { ::mkdir("/tmp/x", 0755); }},
      Row{"code in memory",
          [] { ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
      Row{"memory as code", [] { ::mprotect(reinterpret_cast<void*>(0x10000), 4096, PROT_EXEC); }},
      Row{"ids", [] { [[maybe_unused]] const int error = ::setuid(0); }});
  INFO(row.name);
  const Ending ending = run_walled(row.work);
  CHECK(ending.text.empty());
  CHECK(ending.code == 128 + SIGSYS);
}

TEST_CASE("memory has a bound") {
  const Ending ending = run_walled([] { std::string(100U << 20U, 'x').front() = 'y'; });
  CHECK(ending.text.empty());
  CHECK(ending.code == 125); // std::bad_alloc, which the child's frame catches
}
#endif

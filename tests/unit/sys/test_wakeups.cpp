#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/process/exit_deadline.hpp"
#include "sys/process/service_manager.hpp"
#include "sys/process/wakeups.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

/// The socket that systemd has.
struct ManagerSocket {
  explicit ManagerSocket(const std::string& name) : socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@')
      address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  }
  [[nodiscard]] std::string next() const {
    std::array<char, 512> text{};
    const auto size = ::recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT);
    return {text.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
  }
  Fd socket;
};

} // namespace

TEST_CASE("Wakeups: signals, and nothing", "[wakeups]") {
  auto wakeups = Wakeups::make({SIGUSR1, SIGUSR2});
  REQUIRE(wakeups);
  const auto nothing = wakeups->wait(deadline_in(0ms));
  CHECK((nothing.signals.empty() && !nothing.mounts));

  ::kill(::getpid(), SIGUSR2);
  CHECK(wakeups->wait(deadline_in(10s)).signals == std::set<int>{SIGUSR2});
  CHECK(wakeups->wait(deadline_in(0ms)).signals.empty());
}

TEST_CASE("ServiceManager: says it to the socket, by path and in the abstract namespace", "[service-manager]") {
  const test::TemporaryDirectory directory;
  for (const auto& name : {directory / "notify", "@sharefs-test-" + std::to_string(::getpid())}) {
    const ManagerSocket socket(name);
    const ServiceManager manager(name, "3000000", std::to_string(::getpid()));
    manager.send("READY=1\nSTATUS=x");
    CHECK(socket.next() == "READY=1\nSTATUS=x");
    CHECK(manager.watchdog() == 1500ms);
    CHECK(!ServiceManager(name, "3000000", "1").watchdog()); // that of another process
    CHECK(!ServiceManager(name, "0", std::nullopt).watchdog());
    CHECK(!ServiceManager(name, "x", std::nullopt).watchdog());
  }
}

TEST_CASE("ServiceManager: without a socket, or a strange one, it says nothing", "[service-manager]") {
  for (const auto& name : {std::optional<std::string>(), std::optional<std::string>("relative"),
                           std::optional<std::string>("/nobody/listens"), std::optional(std::string(200, '/'))}) {
    const ServiceManager manager(name, "3000000", std::nullopt);
    manager.send("READY=1");
    CHECK(manager.watchdog().has_value() == (name == "/nobody/listens"));
  }
}

TEST_CASE("logs_to_journal: only if standard error is that stream", "[service-manager]") {
  CHECK(!logs_to_journal(std::nullopt));
  CHECK(!logs_to_journal("0:0"));
}

TEST_CASE("ExitDeadline: ends a process that hangs, and no other", "[last-word]") {
  Pipe output;
  REQUIRE(output.open());
  std::fflush(nullptr); // what Catch has not written yet is not the child's, which ends by a flush under tsan
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(output.write.get(), STDOUT_FILENO);
    {
      const ExitDeadline in_time(1h, "not said\n", 1);
    }
    const ExitDeadline last_word(1ms, "the last word\n", 7);
    for (;;)
      ::pause();
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  std::array<char, 64> text{};
  const auto size = ::read(output.read.get(), text.data(), text.size());
  CHECK(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))) == "the last word\n");
}

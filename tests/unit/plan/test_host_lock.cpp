#include "plan/apply.hpp"
#include "plan/host_lock.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

#include <csignal>
#include <sys/wait.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::plan;
using std::chrono::milliseconds;

namespace {

Result<HostLock> acquire(const sys::Files& files, milliseconds wait,
                         const std::function<void(const std::string&)>& on_wait = {}) {
  return HostLock::acquire(files, "/state", {"sharefs mount --all", "alice"}, wait, on_wait);
}

} // namespace

TEST_CASE("one sharefs at a time, and the second says who the first is") {
  const test::TemporaryRoot root;
  const sys::Files files(root.path());
  {
    const auto held = acquire(files, milliseconds(0));
    REQUIRE(held);
    std::vector<std::string> told;
    const auto begin = std::chrono::steady_clock::now();
    const auto refused = acquire(files, milliseconds(60), [&told](const std::string& text) { told.push_back(text); });
    CHECK(std::chrono::steady_clock::now() - begin >= milliseconds(60));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::busy);
    CHECK(refused.error().hint.find("--wait") != std::string::npos);
    const auto& text = refused.error().message;
    CHECK(told == std::vector<std::string>{text});
    const auto start =
        "another sharefs (`sharefs mount --all`, pid " + std::to_string(::getpid()) + ") has been at work since ";
    CHECK(text.starts_with(start));
    CHECK(text.size() == start.size() + 8); // 12:00:03
  }
  CHECK(acquire(files, milliseconds(0)));
}

TEST_CASE("the second goes on when the first ends") {
  const test::TemporaryRoot root;
  const sys::Files files(root.path());
  auto held = acquire(files, milliseconds(0));
  REQUIRE(held);
  std::jthread other([&held] {
    std::this_thread::sleep_for(milliseconds(30));
    const HostLock ended = std::move(*held);
  });
  CHECK(acquire(files, milliseconds(30'000)));
}

TEST_CASE("the lock ends with its process, whatever its children do") {
  const test::TemporaryRoot root;
  const sys::Files files(root.path());
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto held = acquire(files, milliseconds(0));
    // A child of its own that outlives it, as a hung probe would.
    const auto child = sys::call(std::nullopt, milliseconds(1), []() -> Result<std::string> {
      ::setpgid(0, 0);
      std::this_thread::sleep_for(milliseconds(2000));
      return "";
    });
    [[maybe_unused]] const auto written = ::write(ready[1], held ? "y" : "n", 1);
    ::pause();
  }
  char is_held = 'n';
  REQUIRE(::read(ready[0], &is_held, 1) == 1);
  CHECK(is_held == 'y');
  CHECK_FALSE(acquire(files, milliseconds(0)));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(acquire(files, milliseconds(0)));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("Ctrl-C ends the waiting") {
  const test::TemporaryRoot root;
  const sys::Files files(root.path());
  const auto held = acquire(files, milliseconds(0));
  const pid_t child = ::fork();
  if (child == 0) {
    install_interrupt_handlers();
    ::raise(SIGTERM);
    const auto waited = acquire(files, milliseconds(60'000));
    ::_exit(!waited && waited.error().code == ErrorCode::interrupted ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a lock file without a readable holder") {
  const test::TemporaryRoot root;
  const sys::Files files(root.path());
  const auto held = acquire(files, milliseconds(0));
  for (const auto* content : {"", "{", "[]", R"({"pid":"x","command":1,"user":2,"since":3})"}) {
    test::put(root.path() + "/state/lock", content);
    CHECK(acquire(files, milliseconds(0)).error().message == "another sharefs is at work");
  }
}

#include "mounts/watch/decide.hpp"
#include "support/catch.hpp"

using namespace sharefs::mounts::watch;
using namespace std::chrono_literals;

namespace {

const Time k_begin{std::chrono::hours(1)};

} // namespace

TEST_CASE("pause_after: doubles up to the longest", "[pace]") {
  CHECK(pause_after(1) == 30s);
  CHECK(pause_after(2) == 60s);
  CHECK(pause_after(4) == 240s);
  CHECK(pause_after(7) == 30min);
  CHECK(pause_after(1'000'000) == 30min);
}

TEST_CASE("Pace: each mount has its own pause", "[pace]") {
  Pace pace;
  CHECK(pace.next_attempt("/a") == Time{});
  pace.add_run({"/a"}, k_begin);
  CHECK(pace.next_attempt("/a") == k_begin + 30s);
  CHECK(pace.next_attempt("/b") == Time{});
  pace.add_run({"/a"}, k_begin + 40s);
  CHECK(pace.attempts("/a") == 2);
  CHECK(pace.next_attempt("/a") == k_begin + 40s + 60s);
  pace.keep_only({"/b"});
  CHECK(pace.attempts("/a") == 0);
}

TEST_CASE("Pace: a flapping mount is not forgiven, one that stays well is", "[pace]") {
  Pace pace;
  pace.add_run({"/a"}, k_begin);
  pace.add_check("/a", true, k_begin + 10s);
  pace.add_check("/a", false, k_begin + 9min);
  pace.add_check("/a", true, k_begin + 10min);
  pace.add_check("/a", true, k_begin + 19min);
  CHECK(pace.attempts("/a") == 1);
  pace.add_check("/a", true, k_begin + 20min);
  CHECK(pace.attempts("/a") == 0);
}

TEST_CASE("Pace: not more than k_most_runs in the window", "[pace]") {
  Pace pace;
  for (std::size_t run = 0; run < k_most_runs; ++run) {
    CHECK(pace.next_run(k_begin) == Time{});
    pace.add_run({"/" + std::to_string(run)}, k_begin + std::chrono::seconds(run));
  }
  CHECK(pace.next_run(k_begin + 1min) == k_begin + k_run_window);
  CHECK(pace.next_run(k_begin + k_run_window) == Time{});
  pace.add_run({"/x"}, k_begin + k_run_window);
  CHECK(pace.next_run(k_begin + k_run_window) == k_begin + 1s + k_run_window);
}

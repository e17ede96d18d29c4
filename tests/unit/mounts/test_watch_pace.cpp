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

TEST_CASE("Tries: a flapping mount is not forgiven, one that stays well is", "[pace]") {
  Tries tries{1, k_begin, {}};
  tries.add_check(true, k_begin + 10s);
  tries.add_check(false, k_begin + 9min);
  tries.add_check(true, k_begin + 10min);
  tries.add_check(true, k_begin + 19min);
  CHECK(tries.attempts == 1);
  tries.add_check(true, k_begin + 20min);
  CHECK(tries.attempts == 0);
}

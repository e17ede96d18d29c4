#include "tree/tree.hpp"

#include "support/catch.hpp"
#include "tree/here.hpp"

#include <ctime>
#include <poll.h>

using namespace sharefs;
using namespace std::chrono_literals;

TEST_CASE("progress of a tree, in words", "[tree]") {
  CHECK(tree::Progress{.took = 0s}.text() == "0 files, 0 B, 0 files/s");
  CHECK(tree::Progress{.files = 10, .bytes = 2048, .took = 4s}.text() == "10 files, 2.0 KiB, 2 files/s");
  const tree::Progress half{
      .files = 10'000, .bytes = 512U << 20U, .total_files = 20'000, .total_bytes = 1U << 30U, .took = 10s};
  CHECK(half.text() == "10000/20000, 512 MiB/1.0 GiB, 1000 files/s, 10 s left");
  const tree::Progress large{.files = 150'000,
                             .bytes = 5ULL << 30U,
                             .total_files = 289'524,
                             .total_bytes = 10ULL << 30U,
                             .took = 150s,
                             .waiting = 0.951};
  CHECK(large.text() == "150000/289524, 5.0/10 GiB, 1000 files/s, 2 min left, 95 % wait");
  CHECK(std::string("copying, 1500 s: ").size() + large.text().size() < 80);
}

namespace {

/// What was said last of a child with one thread that has used a processor for so long, and then waited for as long.
std::optional<double> waiting_of(std::chrono::milliseconds works, std::chrono::milliseconds waits,
                                 const tree::Options& options = {}) {
  std::optional<double> said;
  const auto done = tree::watched(
      "/x", options, [&](const tree::Progress& now) { said = now.waiting; },
      [&](const sys::Pulse& pulse) -> Result<void> {
        pulse.set(tree::k_threads, 1);
        while (std::clock() * 1000 / CLOCKS_PER_SEC < works.count())
          continue;
        ::poll(nullptr, 0, static_cast<int>(waits.count()));
        return {};
      });
  CHECK(done);
  return said;
}

} // namespace

TEST_CASE("progress tells how much of the time was waited", "[tree]") {
  const auto waits = waiting_of(0ms, 400ms);
  const auto works = waiting_of(400ms, 0ms);
  REQUIRE((waits && works));
  CHECK((*waits > *works && *waits <= 1 && *works >= 0));
  CHECK_FALSE(waiting_of(0ms, 200ms, {.bytes_per_second = 1})); // the limit is what it waits for
}

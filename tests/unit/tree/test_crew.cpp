#include "tree/crew.hpp"

#include "support/catch.hpp"

#include <set>
#include <thread>

using namespace sharefs::tree;
using namespace std::chrono_literals;

namespace {

/// Tasks one after the other until `seen`, which is told how many threads there are after each, has seen enough, or a
/// minute has passed: a machine that stands still for a moment spoils a measurement, and some later one comes right.
/// How many threads there were at the end.
unsigned threads_after(const std::function<void()>& work, const std::function<bool(unsigned)>& seen) {
  constexpr int k_waiting = 32;
  Crew crew;
  std::atomic<std::uint64_t> begun{k_waiting}, done{0};
  std::atomic<bool> enough{false};
  const auto end = std::chrono::steady_clock::now() + 60s;
  const std::function<void()> task = [&] {
    work();
    ++done;
    if (seen(crew.threads()) || std::chrono::steady_clock::now() >= end)
      enough = true;
    if (enough)
      return;
    ++begun;
    crew.add(task);
  };
  for (int i = 0; i < k_waiting; ++i)
    crew.add(task);
  crew.run({2, 16}, [&] { return done.load(); });
  CHECK(done == begun);
  return crew.threads();
}

} // namespace

TEST_CASE("threads are added where they wait for something else, not where they wait for each other", "[waits]") {
  std::atomic<bool> more{false}; // than the four that are only tried
  (void)threads_after([] { std::this_thread::sleep_for(4ms); },
                      [&](unsigned threads) {
                        if (threads > 4)
                          more = true;
                        return more.load();
                      });
  CHECK(more);

  std::mutex mutex, seeing;
  unsigned most = 0;
  bool fewer = false; // more were tried, and given up
  const auto left = threads_after(
      [&] {
        const std::lock_guard lock(mutex);
        std::this_thread::sleep_for(2ms);
      },
      [&](unsigned threads) {
        const std::lock_guard lock(seeing);
        most = std::max(most, threads);
        return fewer = fewer || threads < most;
      });
  CHECK(fewer);
  CHECK(left <= 4);

  Crew two;
  std::atomic<std::uint64_t> done{0};
  for (int i = 0; i < 400; ++i)
    two.add([&] {
      std::this_thread::sleep_for(1ms);
      ++done;
    });
  two.run({2, 2}, [&] { return done.load(); });
  CHECK((two.threads() == 2 && done == 400));
}

TEST_CASE("few directories are held open, and one above many does not stop them") {
  Crew crew;
  std::atomic<int> held{0}, most{0}, left{0};
  const std::function<void(int)> open = [&](int depth) {
    crew.hold();
    most = std::max(most.load(), ++held);
    for (int i = 0; i < 4 && depth > 0; ++i)
      crew.add_opening([&, depth] { open(depth - 1); });
    crew.add([&] {
      std::this_thread::sleep_for(1ms);
      crew.let_go();
      --held;
      ++left;
    });
  };
  crew.add_opening([&] { open(4); });
  crew.run({16, 16});
  CHECK(left == 1 + 4 + 16 + 64 + 256);
  CHECK(most <= static_cast<int>(Crew::k_most_held) + 16);

  Crew deep; // each is held until those below it are done
  left = 0;
  const std::function<void(int)> go_down = [&](int depth) {
    deep.hold();
    ++left;
    if (depth > 0)
      deep.add_opening([&, depth] { go_down(depth - 1); });
  };
  deep.add_opening([&] { go_down(200); });
  deep.run({4, 4});
  CHECK(left == 201);
}

TEST_CASE("an exception of a task ends the crew and comes out") {
  Crew crew;
  crew.add([] { throw std::runtime_error("no"); });
  for (int i = 0; i < 10; ++i)
    crew.add_opening([] {});
  CHECK_THROWS_AS(crew.run({3, 6}, [] { return 0U; }), std::runtime_error);
}

#include "tree/crew.hpp"

#include "support/catch.hpp"

#include <set>
#include <thread>

using namespace sharefs::tree;
using namespace std::chrono_literals;

namespace {

/// `count` tasks; how many threads there were at the end.
unsigned threads_after(int count, Crew::Threads threads, const std::function<void()>& work) {
  Crew crew;
  std::atomic<std::uint64_t> done{0};
  for (int i = 0; i < count; ++i)
    crew.add([&] {
      work();
      ++done;
    });
  crew.run(threads, [&] { return done.load(); });
  CHECK(done == static_cast<std::uint64_t>(count));
  return crew.threads();
}

} // namespace

TEST_CASE("threads are added where they wait for something else, not where they wait for each other") {
  CHECK(threads_after(1500, {2, 16}, [] { std::this_thread::sleep_for(4ms); }) > 2);
  std::mutex mutex;
  CHECK(threads_after(400, {2, 16}, [&] {
          const std::lock_guard lock(mutex);
          std::this_thread::sleep_for(2ms);
        }) <= 4);
  CHECK(threads_after(100, {2, 2}, [] { std::this_thread::sleep_for(1ms); }) == 2);
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

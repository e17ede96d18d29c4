#include "tree/workers.hpp"

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace sharefs::tree;
using namespace std::chrono_literals;

TEST_CASE("few directories are held open, and one above many does not stop them") {
  Workers workers;
  std::atomic<int> held{0}, most{0}, left{0};
  const std::function<void(int)> open = [&](int depth) {
    workers.hold();
    most = std::max(most.load(), ++held);
    for (int i = 0; i < 4 && depth > 0; ++i)
      workers.add_opening([&, depth] { open(depth - 1); });
    workers.add([&] {
      std::this_thread::sleep_for(1ms);
      workers.release();
      --held;
      ++left;
    });
  };
  workers.add_opening([&] { open(4); });
  workers.run(16);
  CHECK(left == 1 + 4 + 16 + 64 + 256);
  CHECK(most <= static_cast<int>(Workers::k_most_held) + 16);

  Workers deep; // each is held until those below it are done
  left = 0;
  const std::function<void(int)> go_down = [&](int depth) {
    deep.hold();
    ++left;
    if (depth > 0)
      deep.add_opening([&, depth] { go_down(depth - 1); });
  };
  deep.add_opening([&] { go_down(200); });
  deep.run(4);
  CHECK(left == 201);
}

TEST_CASE("an exception of a task ends the others and comes out") {
  Workers workers;
  workers.add([] { throw std::runtime_error("no"); });
  for (int i = 0; i < 10; ++i)
    workers.add_opening([] {});
  CHECK_THROWS_AS(workers.run(3), std::runtime_error);
}

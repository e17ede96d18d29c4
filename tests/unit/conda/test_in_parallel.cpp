#include "conda/in_parallel.hpp"

#include "support/catch.hpp"

#include <chrono>

using namespace sharefs::conda;

TEST_CASE("every index once, and more than one at a time", "[conda]") {
  for (const std::size_t count : {0U, 1U, 7U, 200U}) {
    std::vector<std::atomic<int>> calls(count);
    in_parallel(count, [&](std::size_t index) { ++calls[index]; });
    for (const auto& call : calls)
      CHECK(call == 1);
  }
  std::atomic<int> inside{0}, most{0};
  in_parallel(k_homes_at_once * 2, [&](std::size_t) {
    most = std::max(most.load(), ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --inside;
  });
  CHECK(most > 1);
  CHECK(most <= static_cast<int>(k_homes_at_once));
}

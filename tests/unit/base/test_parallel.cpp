#include "base/parallel.hpp"

#include "support/catch.hpp"

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

using namespace sharefs;

TEST_CASE("numbered work is shared by threads, each number once") {
  for (const std::size_t threads : {1U, 4U, 100U}) {
    std::array<std::atomic<int>, 50> seen{};
    in_parallel(seen.size(), threads, [&](std::size_t number) { ++seen.at(number); });
    for (const auto& count : seen)
      CHECK(count == 1);
  }
  in_parallel(0, 4, [](std::size_t) { FAIL(); });
}

TEST_CASE("an exception ends numbered work and comes out") {
  std::atomic<int> done{0};
  const auto work = [&](std::size_t number) {
    if (number == 3)
      throw std::runtime_error("no");
    ++done;
  };
  CHECK_THROWS_AS(in_parallel(1'000'000, 4, work), std::runtime_error);
  CHECK(done < 1'000'000);
}

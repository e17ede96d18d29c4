#include "base/parallel.hpp"

#include "base/thrown.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace sharefs {

void in_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take_numbers = [&] {
    try {
      for (auto number = next++; number < count; number = next++)
        work(number);
    } catch (...) {
      next = count;
      throw;
    }
  };
  Thrown thrown;
  {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < std::min(count, threads))
        others.emplace_back([&] { thrown.keep(take_numbers); });
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): fewer threads take longer
    }
    thrown.keep(take_numbers);
  }
  thrown.rethrow();
}

} // namespace sharefs

#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sharefs {

void in_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr first; // caught, because an exception that leaves a thread ends the process
  const auto take_numbers = [&] {
    try {
      for (auto number = next++; number < count; number = next++)
        work(number);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!first)
        first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < std::min(count, threads))
        others.emplace_back(take_numbers);
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): fewer threads take longer
    }
    take_numbers();
  }
  if (first)
    std::rethrow_exception(first);
}

} // namespace sharefs

#pragma once
// Many homes at once: each one waits for a child of its own, and some may lie on a server that does not answer.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace sharefs::conda {

inline constexpr std::size_t k_homes_at_once = 32;

/// Calls work(0) ... work(count - 1), each once, on up to k_homes_at_once threads; returns when all have ended.
/// `work` must not throw and must touch only what belongs to its index.
template <class Work> void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (auto index = next++; index < count; index = next++)
      work(index);
  };
  std::vector<std::jthread> others; // joined by their destructors
  for (std::size_t extra = 1; extra < std::min(count, k_homes_at_once); ++extra)
    others.emplace_back(take);
  take();
}

} // namespace sharefs::conda

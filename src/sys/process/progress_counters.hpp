#pragma once
// Lets a child work for as long as it makes progress, which it counts in memory shared with its parent. A pipe is not
// used for this: a counter costs a child with many threads almost nothing, and no reader has to keep up.
#include "base/result.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace sharefs::sys {

class ProgressCounters {
 public:
  static constexpr std::size_t k_counters = 4; ///< the caller decides the meaning of each
  static Result<ProgressCounters> make();

  void add(std::size_t counter, std::uint64_t count = 1) const {
    (*m_counters)[counter].fetch_add(count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get(std::size_t counter) const {
    return (*m_counters)[counter].load(std::memory_order_relaxed);
  }
  void set(std::size_t counter, std::uint64_t value) const {
    (*m_counters)[counter].store(value, std::memory_order_relaxed);
  }
  [[nodiscard]] std::array<std::uint64_t, k_counters> all() const { return {get(0), get(1), get(2), get(3)}; }

 private:
  using Counters = std::array<std::atomic<std::uint64_t>, k_counters>;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "two processes share it");
  std::shared_ptr<Counters> m_counters;
};

} // namespace sharefs::sys

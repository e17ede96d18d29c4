#pragma once
// Lets a child work for as long as it makes progress, which it counts in memory shared with its parent. A pipe is not
// used for this: a counter costs a child with many threads almost nothing, and no reader has to keep up.
#include "base/text.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"

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

/// Like call(), but the child is given up only if it adds nothing to `counters` for `deadline` (`timeout`), or after
/// Ctrl-C (`interrupted`). `seen` is called many times a second, in the parent. The child ends with its parent.
template <class Work>
auto call_while(const ProgressCounters& counters, const std::optional<User>& as, std::chrono::milliseconds deadline,
                const Work& work, const std::function<void()>& seen = nullptr) {
  using Answer = std::invoke_result_t<Work>;
  const pid_t parent = ::getpid();
  bool stalled = false;
  auto last = counters.all();
  auto end = deadline_in(deadline);
  const auto given_up = [&] {
    if (seen)
      seen();
    if (const auto now = counters.all(); now != last) {
      last = now;
      end = deadline_in(deadline);
    }
    stalled = Clock::now() >= end;
    return stalled || interrupted();
  };
  Answer answer = call(
      as, std::chrono::milliseconds::max(),
      [&]() -> Answer {
        if (auto ends = end_with(parent); !ends)
          return fail(ends.error());
        return work();
      },
      given_up);
  if (!answer && stalled)
    return Answer(fail(ErrorCode::timeout,
                       "no progress for " + format_duration(deadline / std::chrono::microseconds(1)),
                       "it may lie on a dead mount: run `sharefs status`"));
  return answer;
}

} // namespace sharefs::sys

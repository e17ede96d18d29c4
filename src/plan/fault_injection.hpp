#pragma once
// Private to plan: SIGKILL at a chosen place, for tests of what a killed process leaves behind.
#include <cstddef>
#include <limits>

namespace sharefs::plan {

/// The environment variable SHAREFS_TEST_KILL_AT makes apply() kill its own process:
///   N   just before the action of step N (counted from 0, in the order of the plan), its intent being in the journal
///   N+  right after that action, before its end is in the journal
/// Without the variable nothing is compared but two numbers per step. A set-user-id program ignores it
/// (secure_getenv(3)).
class FaultInjection {
 public:
  static FaultInjection from_environment();
  void before_action(std::size_t step) const {
    if (step == m_before)
      kill_self();
  }
  void after_action(std::size_t step) const {
    if (step == m_after)
      kill_self();
  }

 private:
  static constexpr std::size_t k_never = std::numeric_limits<std::size_t>::max();
  static void kill_self();
  std::size_t m_before = k_never, m_after = k_never;
};

} // namespace sharefs::plan

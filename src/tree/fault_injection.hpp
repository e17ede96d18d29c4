#pragma once
// SIGKILL at a chosen step, for tests of what a killed process leaves behind. Only builds for tests have it
// (SHAREFS_FAULT_INJECTION); in the release preset the functions do nothing.
#ifdef SHAREFS_FAULT_INJECTION
#include "base/number.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unistd.h>
#endif

namespace sharefs::tree {

#ifdef SHAREFS_FAULT_INJECTION
/// A step of an environment variable's text: "3" or "3+".
struct ChosenStep {
  std::size_t number = 0;
  bool plus = false;
};

inline std::optional<ChosenStep> chosen_step(const char* variable) {
  const char* const value = std::getenv(variable);
  std::string_view text = value == nullptr ? "" : value;
  const bool plus = text.ends_with('+');
  text.remove_suffix(plus ? 1 : 0);
  const auto number = parse_number<std::size_t>(text);
  return number ? std::optional(ChosenStep{*number, plus}) : std::nullopt;
}
#endif

/// SHAREFS_TEST_KILL_AT_TREE=N kills this child at its N-th step; N+ kills its parent, with which the child ends.
inline void may_be_killed() {
#ifdef SHAREFS_FAULT_INJECTION
  static std::atomic<std::size_t> step{0};
  if (const auto chosen = chosen_step("SHAREFS_TEST_KILL_AT_TREE"); chosen && step++ == chosen->number)
    ::kill(chosen->plus ? ::getppid() : ::getpid(), SIGKILL);
#endif
}

} // namespace sharefs::tree

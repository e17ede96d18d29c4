#pragma once
// Private to plan: SIGKILL at a chosen step, for tests of what a killed process leaves behind. Only builds for tests
// have it (SHAREFS_FAULT_INJECTION); in the release preset the function is empty.
#include <cstddef>

#ifdef SHAREFS_FAULT_INJECTION
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#endif

namespace sharefs::plan {

/// Kills this process if the environment variable SHAREFS_TEST_KILL_AT says so. N: just before the action of step N
/// (counted from 0, in the order of the plan), when its intent is in the journal. N+: right after that action, before
/// its result is in the journal.
inline void kill_if_chosen([[maybe_unused]] std::size_t step, [[maybe_unused]] bool after) {
#ifdef SHAREFS_FAULT_INJECTION
  const char* value = std::getenv("SHAREFS_TEST_KILL_AT");
  const std::string_view text = value == nullptr ? "" : value;
  std::size_t chosen = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), chosen);
  if (error == std::errc{} && chosen == step && (std::string_view(end) == "+") == after)
    ::kill(::getpid(), SIGKILL);
#endif
}

} // namespace sharefs::plan

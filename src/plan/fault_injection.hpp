#pragma once
// Private to plan: SIGKILL at a chosen place, for tests of what a killed process leaves behind. Only in builds that are
// made for tests (SHAREFS_FAULT_INJECTION, which the release preset has not): in the product it is nothing at all.
#include <cstddef>

#ifdef SHAREFS_FAULT_INJECTION
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#endif

namespace sharefs::plan {

/// The environment variable SHAREFS_TEST_KILL_AT makes apply() kill its own process: at N just before the action of
/// step N (counted from 0, in the order of the plan), its intent being in the journal; at N+ right after that action,
/// before its end is in the journal.
inline void may_be_killed([[maybe_unused]] std::size_t step, [[maybe_unused]] bool after) {
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

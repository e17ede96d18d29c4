#pragma once
// Private to tree: SIGKILL at a chosen step of a copy, like kill_if_chosen() of plan/apply.cpp for the steps of a plan.
#ifdef SHAREFS_FAULT_INJECTION
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#endif

namespace sharefs::tree {

/// SHAREFS_TEST_KILL_AT_TREE=N kills this child at its N-th step; N+ kills its parent, with which the child ends.
inline void may_be_killed() {
#ifdef SHAREFS_FAULT_INJECTION
  static std::atomic<std::size_t> step{0};
  static const char* const value = std::getenv("SHAREFS_TEST_KILL_AT_TREE");
  const std::string_view text = value == nullptr ? "" : value;
  std::size_t chosen = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), chosen);
  if (error == std::errc{} && step++ == chosen)
    ::kill(std::string_view(end) == "+" ? ::getppid() : ::getpid(), SIGKILL);
#endif
}

} // namespace sharefs::tree

#pragma once
#include "base/result.hpp"

#include <cstddef>

namespace sharefs::cli {

// Exit codes of every command but `run`, which returns the exit code of its child.
inline constexpr int k_exit_ok = 0;
inline constexpr int k_exit_failed = 1;
inline constexpr int k_exit_usage = 2;   ///< usage or configuration
inline constexpr int k_exit_pending = 3; ///< --check found something to do
inline constexpr int k_exit_partly = 4;  ///< some work was done, some failed
inline constexpr int k_exit_interrupted = 130;
/// Nobody reads standard output any more; shells report SIGPIPE with this code.
inline constexpr int k_exit_pipe_closed = 141;
// Exit codes of `run`, the same as those of env(1) and timeout(1).
inline constexpr int k_exit_run_failed = 125;
inline constexpr int k_exit_not_executable = 126;
inline constexpr int k_exit_not_found = 127;

constexpr int exit_code_of(const Error& error) {
  switch (error.code) {
  case ErrorCode::usage:
  case ErrorCode::config:
    return k_exit_usage;
  case ErrorCode::interrupted:
    return k_exit_interrupted;
  default:
    return k_exit_failed;
  }
}

/// The exit code of work in parts: 0 if no part is bad, 1 if no part is good, 4 otherwise.
constexpr int exit_code_for(std::size_t good, std::size_t bad) {
  return bad == 0 ? k_exit_ok : good == 0 ? k_exit_failed : k_exit_partly;
}

} // namespace sharefs::cli

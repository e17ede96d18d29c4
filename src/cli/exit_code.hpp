#pragma once
#include "base/result.hpp"

#include <cstddef>

namespace sharefs::cli {

// Of every command but `run`, which returns its child's code.
inline constexpr int k_exit_ok = 0;
inline constexpr int k_exit_failed = 1;
inline constexpr int k_exit_usage = 2;   ///< usage or configuration
inline constexpr int k_exit_pending = 3; ///< --check found something to do
inline constexpr int k_exit_partly = 4;  ///< some was done, some not
inline constexpr int k_exit_interrupted = 130;
inline constexpr int k_exit_pipe_closed = 141; ///< nobody reads standard output any more; as a shell reports SIGPIPE
// Of `run`, as env(1) and timeout(1) have them.
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

/// Of work in parts: 0 if none is bad, 1 if none is good, 4 otherwise.
constexpr int exit_code_for(std::size_t good, std::size_t bad) {
  return bad == 0 ? k_exit_ok : good == 0 ? k_exit_failed : k_exit_partly;
}

} // namespace sharefs::cli

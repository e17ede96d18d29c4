#pragma once
// A question to another host, by the ssh of this one.
#include "base/result.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <string>

namespace sharefs::sys {

struct RemoteRequest {
  std::string host;                  ///< as ssh(1) takes it: a name of its configuration, user@host
  std::string script;                ///< of a POSIX shell; goes over stdin, so that no login shell reads it
  std::chrono::seconds deadline{10}; ///< of the script, on the other host itself: it goes on when ssh is killed here
};

/// What the script printed. Nobody is asked for a password or a host key. Takes at most deadline + 7 s. Errors:
/// `failed` with the last line that ssh or the script said, `timeout`, `not_found` (no ssh here), `usage` (ssh
/// would take `host` for an option, or it could be no host).
Result<std::string> ask_remote(System& system, const RemoteRequest& request);

} // namespace sharefs::sys

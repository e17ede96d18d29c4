#pragma once
// Before the GPUs start: can the other nodes hold the caches? Asked over ssh, all at once.
#include "cachefix/store/local_root.hpp"

namespace sharefs::cachefix {

struct NodeReport {
  enum class State { good, bad, unknown /* it could not be asked */ };
  std::string host;
  State state = State::unknown;
  std::string
      problem; ///< of bad and unknown ones, one line; of a good one: its directory is memory, which nobody asked for
  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

/// Makes `directory` (LOCAL/USER, mode 0700) on every host and looks whether it is this user's, not on shared storage,
/// writable, has room for bytes and inodes, is not mounted noexec where it holds code, and whether flock works there.
/// By sys::ask_remote, many hosts at once, each within `deadline` and what ssh takes; reports are in the order of the
/// hosts. This host itself is left out.
std::vector<NodeReport> check_nodes(sys::System& system, const std::vector<std::string>& hosts,
                                    const std::string& directory, Holds holds, const LocalChoice& choice,
                                    std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix

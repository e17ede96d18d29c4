#pragma once
// Finds processes by /proc. It reads no file that can hang together with a process (cmdline, maps).
#include "sys/system.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

struct FoundProcess {
  int pid = 0;
  std::string name; ///< comm: at most 15 bytes
  friend bool operator==(const FoundProcess&, const FoundProcess&) = default;
};

/// The namespace that a process must share with this one, because /proc also shows the processes of containers. Use
/// `network` for a daemon that answers the kernel, which asks within a network namespace, and `mount` for a daemon that
/// works on paths.
enum class Namespace { mount, network };

/// Returns the ids of all processes.
std::vector<int> process_ids(System& system, std::chrono::milliseconds deadline);
/// Returns the processes of our namespace whose name is one of `names`. A process that cannot be read is left out.
std::vector<FoundProcess> find_processes(System& system, const std::vector<std::string_view>& names, Namespace same,
                                         std::chrono::milliseconds deadline = std::chrono::seconds(3));

} // namespace sharefs::sys

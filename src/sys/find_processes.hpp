#pragma once
// Which processes there are, by /proc: never by what can hang with a process (its cmdline, its maps).
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

/// The namespace that a process has to share with this one: /proc shows those of containers, too. `network` for a
/// daemon that answers the kernel, which asks within a network namespace; `mount` for one that works on paths.
enum class Namespace { mount, network };

/// The numbers of all processes.
std::vector<int> process_ids(System& system, std::chrono::milliseconds deadline);
/// Those of our namespace whose name is one of `names`. What cannot be read is left out.
std::vector<FoundProcess> find_processes(System& system, const std::vector<std::string_view>& names, Namespace same,
                                         std::chrono::milliseconds deadline = std::chrono::seconds(3));

} // namespace sharefs::sys

#pragma once
// Reads /proc/PID of processes. A file that can hang together with its process (cmdline, maps, environ) is read in a
// child, with the deadline; find_processes() reads none of them.
#include "sys/system.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

inline constexpr std::chrono::seconds k_process_deadline{3};

/// Returns the ids of all processes.
std::vector<int> process_ids(System& system, std::chrono::milliseconds deadline = k_process_deadline);

struct ProcessEntries {
  int pid = 0;
  std::vector<Entry> entries;     ///< the answers, in the order of the queries
  std::vector<Entry> descriptors; ///< the links in `fd`, if a query has listed it
};

/// Asks the queries of each of the processes; their paths are below /proc/PID, "" is that directory. A process that has
/// ended has only entries that are missing.
std::vector<ProcessEntries> read_processes(System& system, const std::vector<int>& pids,
                                           const std::vector<EntryQuery>& queries,
                                           std::chrono::milliseconds deadline = k_process_deadline);

struct FoundProcess {
  int pid = 0;
  std::string name; ///< comm: at most 15 bytes
  friend bool operator==(const FoundProcess&, const FoundProcess&) = default;
};

/// The namespace that a process must share with this one, because /proc also shows the processes of containers. Use
/// `network` for a daemon that answers the kernel, which asks within a network namespace, and `mount` for a daemon that
/// works on paths.
enum class Namespace { mount, network };

/// Returns the processes of our namespace whose name is one of `names`. A process that cannot be read is left out.
std::vector<FoundProcess> find_processes(System& system, const std::vector<std::string_view>& names, Namespace same,
                                         std::chrono::milliseconds deadline = k_process_deadline);

/// Returns the start time of a process, in clock ticks since boot (proc(5), field 22 of stat); nullopt: there is no
/// such process, or /proc hides it. Together with the boot id it distinguishes a process from a later one with the same
/// pid.
std::optional<std::uint64_t> process_start(const Files& files, int pid);
/// Returns how long a process has run, by the texts of its /proc/PID/stat and of /proc/uptime; 0 if they do not tell.
std::chrono::seconds age_of_process(std::string_view stat, std::string_view uptime);
/// True if the process that has begun at `start` has ended; nullopt: /proc hides it (proc(5), hidepid), and some
/// process has this id.
std::optional<bool> has_ended(const Files& files, int pid, std::uint64_t start);
/// Returns the id of the process that has started this one; 0: there is none.
int process_parent(const Files& files, int pid);

} // namespace sharefs::sys

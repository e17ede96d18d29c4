#pragma once
// Who keeps a mount busy, by the links /proc/PID/{cwd,root,exe,fd/*} and by maps. Not by cmdline, nor by fuser: both
// hang with a process that hangs.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct Holder {
  int pid = 0;
  std::string command;           ///< /proc/PID/comm
  std::vector<std::string> uses; ///< "cwd /data/share/x", "fd 3 /data/share/log", "mapped /data/share/lib.so"
  friend bool operator==(const Holder&, const Holder&) = default;
};
template <FieldsOf<Holder> H> auto fields(H& h) {
  return named("pid", h.pid, "command", h.command, "uses", h.uses);
}

struct HolderReport {
  std::vector<Holder> holders;
  /// Processes of other mount namespaces (containers) that have the file system mounted themselves: they do not make
  /// umount fail, but keep the old superblock alive. One pid per namespace.
  std::vector<Holder> namespaces;
  /// Processes that wait for an NFS server at this moment: the kernel does not say for which mount.
  std::vector<Holder> waiting;
  std::vector<std::string> gaps; ///< what could not be seen
  friend bool operator==(const HolderReport&, const HolderReport&) = default;
};

/// Of every mount in `mounts`, keyed by target, with one scan of the processes; without this process. Each of its three
/// requests takes at most `deadline` and a second.
std::map<std::string, HolderReport> find_holders(sys::System& system, const std::vector<sys::MountEntry>& mounts,
                                                 std::chrono::milliseconds deadline);

/// SF229, for a mount that could not be unmounted.
Diagnosis diagnose_busy(const std::string& target, const HolderReport& report);

// ---- the pure parts ----

/// A process as /proc shows it.
struct ProcessFacts {
  int pid = 0;
  std::string command, mount_namespace;
  std::string waits_in;                                   ///< /proc/PID/wchan
  std::vector<std::pair<std::string, std::string>> links; ///< ("cwd", "/data/share"), ("fd 3", "/dev/null")
  std::vector<std::string> mapped;                        ///< files of /proc/PID/maps
};
using Holders = std::map<std::string, std::vector<Holder>>; ///< by target
/// Which of the mounts at `targets`, in our own namespace, the processes use.
Holders holders_of(const std::set<std::string>& targets, const std::vector<ProcessFacts>& processes,
                   const std::string& own_namespace);
/// Processes in the middle of a request to an NFS server: they use a mount without any descriptor that could be seen.
/// Not the kernel's threads, which are no program (`exe`).
std::vector<Holder> waiting_processes(const std::vector<ProcessFacts>& processes, const std::string& own_namespace);
/// Files of the text of /proc/PID/maps (the sixth column), each once.
std::vector<std::string> mapped_files(const std::string& maps);

/// Lines for a person: "pid 4711 (python): cwd /data/share, fd 3 /data/share/log", at most `limit` and a count of the
/// rest.
std::vector<std::string> describe(const HolderReport& report, std::size_t limit = 10);

} // namespace sharefs::mounts

#pragma once
// Finds the processes that keep a mount busy, by the links /proc/PID/{cwd,root,exe,fd/*} and by maps. It uses neither
// cmdline nor fuser, because both hang if a process hangs.
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
  /// Processes of other mount namespaces (containers) in which the file system is mounted, too: they do not make umount
  /// fail, but keep the old superblock in use. One pid per namespace.
  std::vector<Holder> namespaces;
  /// Processes that are waiting for an NFS server; the kernel does not show for which mount.
  std::vector<Holder> waiting;
  std::vector<std::string> gaps; ///< what could not be read
  friend bool operator==(const HolderReport&, const HolderReport&) = default;
};

/// Finds the holders of all `mounts` with one scan of the processes, and returns them by target. This process does not
/// count. Each of its requests takes at most `deadline` and a second.
std::map<std::string, HolderReport> find_holders(sys::System& system, const std::vector<sys::MountEntry>& mounts,
                                                 std::chrono::milliseconds deadline);

/// SF229, for a mount that could not be unmounted.
Diagnosis diagnose_busy(const std::string& target, const HolderReport& report);

// ---- the pure parts ----

/// The facts that /proc shows about a process.
struct ProcessFacts {
  int pid = 0;
  std::string command, mount_namespace;
  std::string waits_in;                                   ///< /proc/PID/wchan
  std::vector<std::pair<std::string, std::string>> links; ///< ("cwd", "/data/share"), ("fd 3", "/dev/null")
  std::vector<std::string> mapped;                        ///< files of /proc/PID/maps
};
using Holders = std::map<std::string, std::vector<Holder>>; ///< by target
/// Returns which of the mounts at `targets` the processes of our own mount namespace use.
Holders holders_of(const std::set<std::string>& targets, const std::vector<ProcessFacts>& processes,
                   const std::string& own_namespace);
/// Finds processes that wait for an NFS server: they may use a mount without an open descriptor. Kernel threads do not
/// count; they have no program (`exe`).
std::vector<Holder> find_waiting(const std::vector<ProcessFacts>& processes, const std::string& own_namespace);
/// Returns the files in the text of /proc/PID/maps (the sixth column), each once.
std::vector<std::string> mapped_files(const std::string& maps);

/// Returns lines for a person: "pid 4711 (python): cwd /data/share, fd 3 /data/share/log". After `limit` lines only the
/// number of the rest follows.
std::vector<std::string> describe(const HolderReport& report, std::size_t limit = 10);

} // namespace sharefs::mounts

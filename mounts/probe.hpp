#pragma once
// The room's only door to the machine for reading: mount table, pending mounts, mount points, servers.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/state.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct ProbeRequest {
  std::vector<MountPoint> wanted;
  bool others = false;      ///< also every visible NFS mount that nobody asked for
  bool servers = true;      ///< probe their servers, of `others` only those whose mounts are not well
  bool want_access = false; ///< ask the servers' mountd what this host may mount (leaves a line in the server's log)
  std::set<std::string> resting = {}; ///< targets of mounts that are not asked: their health is unknown
  bool targets = false;               ///< read the directories on which nothing is mounted (MountState::answer)
  std::chrono::milliseconds path_deadline{2000};
  std::chrono::milliseconds server_deadline{5000};
};

struct Observation {
  sys::MountTable table;
  std::vector<MountState> states;               ///< the wanted ones in their order, then the others by target
  std::map<std::string, sys::NfsProbe> servers; ///< by host as the mounts name it; only those that were asked for

  [[nodiscard]] const sys::NfsProbe* server(const std::string& host) const;
};

/// Reads the mount table once, asks all mount points in one request, and the servers of `wanted` at the same time; then
/// those of `others` that are not well. Takes at most the two deadlines, one after the other (plus one second).
/// Errors: those of the mount table and of unknown profiles.
Result<Observation> probe(sys::System& system, const ProbeRequest& request);

/// The mount points of `states` once more (for recovery): answer and health are renewed.
void probe_again(sys::System& system, std::vector<MountState>& states, std::chrono::milliseconds deadline);

} // namespace sharefs::mounts

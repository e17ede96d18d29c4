#pragma once
// Reads the state of the mounts from the machine: mount table, pending mounts, mount points, servers.
#include "base/diagnosis.hpp"
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/state.hpp"
#include "plan/say.hpp"
#include "sys/fs/mountstats.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct ProbeRequest {
  std::vector<MountPoint> wanted;
  bool others = false;      ///< also read every visible NFS mount that is not in `wanted`
  bool servers = true;      ///< probe the servers, of `others` only those of mounts that do not answer well
  bool want_access = false; ///< ask the servers' mountd what this host may mount (leaves a line in the server's log)
  std::set<std::string> skipped = {};    ///< targets of mounts that are not asked: their health is unknown
  bool targets = false;                  ///< read the directories on which nothing is mounted (MountState::answer)
  sys::TakeoversByTarget takeovers = {}; ///< of an earlier observation: a mount on which they grow is one of two hosts
  std::chrono::milliseconds path_deadline{2000};
  std::chrono::milliseconds server_deadline{5000};
};

struct Observation {
  sys::MountTable table;
  std::vector<MountState> states;               ///< the wanted mounts in their order, then the others by target
  std::map<std::string, sys::NfsProbe> servers; ///< by server_key(); only servers that were probed
  sys::TakeoversByTarget takeovers;             ///< of all mounts of NFS 4

  [[nodiscard]] const sys::NfsProbe* server(const MountPoint& point) const;
};

/// Reads the mount table once. Asks all mount points in one request, and the servers of `wanted` at the same time; then
/// the servers of other mounts that do not answer well. It takes at most the sum of the two deadlines and a second.
/// Errors: those of the mount table and of unknown profiles.
Result<Observation> probe(sys::System& system, const ProbeRequest& request);

/// Asks the mount points of `states` once more (for recovery), and sets their new answer and health.
void probe_again(sys::System& system, const std::vector<MountState*>& states, std::chrono::milliseconds deadline);

// Asks an NFS server what it answers to this host, and whether one of its exports can be mounted.

struct ServerQuestion {
  std::string name; ///< the server or export for messages
  sys::NfsProbeRequest request;
  bool until_ready = false; ///< ask again until it can be mounted
};

struct ServerReply {
  sys::NfsProbe probe;
  Diagnoses diagnoses; ///< the failing stage with cause and cure, or why the path cannot be mounted
  bool ready = false;
};

/// Asks a server. With `until_ready` it waits without a limit, and reports each new reason once, for the log at boot.
ServerReply ask_server(sys::System& system, const ServerQuestion& question, const plan::Say& say);

} // namespace sharefs::mounts

#pragma once
// The NFS server of this host: checks that it is installed and runs, and plans the steps that start its parts.
#include "base/diagnosis.hpp"
#include "base/result.hpp"
#include "exports/export.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

/// A systemd unit as `systemctl show` prints it.
struct Unit {
  std::string name;
  std::string load;    ///< loaded, not-found, masked
  std::string active;  ///< active, inactive, failed
  std::string enabled; ///< enabled, disabled, static, alias, masked, ...
  friend bool operator==(const Unit&, const Unit&) = default;
};

struct ServerState {
  bool systemd = false;
  std::vector<std::string> missing; ///< programs that are not installed
  bool visible = true;              ///< false: only root can see whether the server runs, so no steps are planned
  int threads = 0;                  ///< of nfsd in this network namespace; 0: nfsd does not run
  bool version3 = true;             ///< NFS version 3 is offered, or would be by nfs.conf(5) if the server ran
  std::vector<Unit> units;          ///< with systemd: the units of k_units that exist
  std::vector<std::string> daemons; ///< without systemd: the server's daemons that run in this network namespace
  bool nfsd_mounted = false;        ///< on /proc/fs/nfsd
  bool pipefs_mounted = false;      ///< rpc_pipefs is mounted somewhere
  friend bool operator==(const ServerState&, const ServerState&) = default;

  [[nodiscard]] bool running() const { return threads > 0; }
};

/// Reads /proc and the mount table, and asks systemctl where systemd runs. Errors: those of System, and `failed` if
/// systemctl fails.
Result<ServerState> probe_server(sys::System& system);

/// Reads a boolean of nfs.conf(5) by nfsconf(8), which reads it as the daemons do; `fallback` if it is not set.
bool nfs_conf_flag(sys::System& system, const std::string& section, const std::string& key, bool fallback);

/// Fails with `not_found` for the first missing program and hints at the commands that install it; with `failed` for a
/// masked unit.
Result<void> check_installed(const ServerState& state);

/// SF146: reports the server or the first daemon that does not run although clients need it. Returns nothing where only
/// root can see what runs.
Diagnoses diagnose_server(const ServerState& state);

/// Adds the steps that start and enable the parts of the server that do not run, in order; a running server is never
/// restarted. These steps come after the exports were written and `exportfs -r` was run. A note explains a part that is
/// left alone.
void add_server_steps(const ServerState& state, const std::string& group, plan::Plan& plan);

} // namespace sharefs::exports

#pragma once
// The NFS server of this host: is it installed, does it run, and the steps that start what does not.
#include "base/diagnosis.hpp"
#include "base/result.hpp"
#include "exports/export.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <optional>
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
  bool visible = true;              ///< false: not root, so what runs is not known, and no steps are planned
  int threads = 0;                  ///< of nfsd in this network namespace; 0: it does not run
  bool version3 = true;             ///< offered, or by nfs.conf(5) would be
  std::vector<Unit> units;          ///< with systemd: of k_units, those that there are
  std::vector<std::string> daemons; ///< without systemd: names of processes in this network namespace
  bool nfsd_mounted = false;        ///< /proc/fs/nfsd
  bool pipefs_mounted = false;      ///< rpc_pipefs, wherever
  friend bool operator==(const ServerState&, const ServerState&) = default;

  [[nodiscard]] bool running() const { return threads > 0; }
};

/// Reads /proc and the mount table, or asks systemctl. Errors of System.
Result<ServerState> probe_server(sys::System& system);

/// A boolean of nfs.conf(5), by nfsconf(8), which reads it as the daemons do; `fallback` if it is not set.
bool nfs_conf_flag(sys::System& system, const std::string& section, const std::string& key, bool fallback);

/// `not_found` that names the first missing program, and the commands that install it; `failed` for a masked unit.
Result<void> check_installed(const ServerState& state);

/// SF146: what has to run here so that clients can mount, and does not. Nothing where only root could know.
Diagnoses diagnose_server(const ServerState& state);

/// What starts and enables what does not run, in order; a running server is never restarted. The exports are written
/// and `exportfs -r` was run before these. Also says what it leaves alone.
void add_server_steps(const ServerState& state, const std::string& group, plan::Plan& plan);

} // namespace sharefs::exports

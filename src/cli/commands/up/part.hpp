#pragma once
// What sharefs.yaml, the same file on every machine, says about this host.
#include "cli/commands/export/support.hpp"
#include "cli/context.hpp"
#include "mounts/mount_point.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cli {

struct HostPart {
  OwnServers own;                         ///< the servers that are this host
  std::vector<mounts::MountPoint> mounts; ///< what it is to have
  std::vector<std::string> elsewhere;     ///< names of mounts whose `clients:` are other hosts
};
/// A mount is this host's if the host serves it, or if the server's `clients:` may mean this host: a netgroup, a
/// pattern that the server resolves, a name that nobody can resolve now, and a server that the file does not describe
/// are decided by the server, when it is asked.
HostPart find_part(sys::System& system, const config::Config& config);

/// `config` where the file has mounts or exports, and none is this host's: who this host is, and where to name it.
Result<void> check_named(sys::System& system, const config::Config& config, const HostPart& part);

/// What `up` (or, to `remove`, `down`) has to do with the exports of this host; nullopt: nothing.
Result<std::optional<exports::Task>> find_exports(sys::System& system, const config::Config& config,
                                                  const OwnServers& own, bool remove);

/// "server `storage1` (1 export), 2 mounts from storage1, storage2".
std::string describe(const HostPart& part);
/// {servers, exports, mounts, elsewhere}
nlohmann::ordered_json to_json(const HostPart& part);

} // namespace sharefs::cli

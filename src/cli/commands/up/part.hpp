#pragma once
// The part of sharefs.yaml, which is the same file on every machine, that applies to this host.
#include "cli/commands/export/support.hpp"
#include "cli/context.hpp"
#include "mounts/boot.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/state.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cli {

struct HostPart {
  OwnServers own;                         ///< the servers that are this host
  std::vector<mounts::MountPoint> mounts; ///< the mounts for this host
  std::vector<std::string> elsewhere;     ///< names of mounts whose `clients:` are other hosts
};
/// The deadline for resolving all names of a file together. A name without an answer counts as this host, and the
/// server decides.
inline constexpr std::chrono::milliseconds k_names_deadline{3'000};

/// Finds the part. A mount belongs to this host if the host serves it, or if the server's `clients:` may mean this
/// host. Only the server can decide about a netgroup, a pattern that it resolves, a name that nobody can resolve now,
/// and about a server that the file does not describe; then the mount belongs to this host, and the server is asked
/// when it is mounted.
HostPart find_part(sys::System& system, const config::Config& config,
                   std::chrono::milliseconds names_deadline = k_names_deadline);

/// Returns the mounts for this host, or all if the file does not name this host, which is a fault (check_named()).
std::vector<mounts::MountPoint> mounts_for_host(sys::System& system, const config::Config& config,
                                                std::chrono::milliseconds names_deadline = k_names_deadline);
/// Removes the states of mounts that are missing because they are for other hosts. Names are resolved only if some are
/// missing.
void leave_out_elsewhere(sys::System& system, const config::Config* config, std::vector<mounts::MountState>& states,
                         std::chrono::milliseconds names_deadline = k_names_deadline);

/// Error `config` if the file has mounts or exports, but none for this host. It names this host, and where to add it.
Result<void> check_named(sys::System& system, const config::Config& config, const HostPart& part);

/// Returns the request of `up` (or of `down`, with `remove`) for the exports of this host; nullopt if there is none.
Result<std::optional<exports::Request>> find_exports(sys::System& system, const config::Config& config,
                                                     const OwnServers& own, bool remove);

/// Returns "server `storage1` (1 export), 2 mounts from storage1, storage2".
std::string describe(const HostPart& part);
/// Returns {servers, exports, mounts, elsewhere}.
Json to_json(const HostPart& part);

// The image of a node, below --root: the part of `up` that can be done in it, and the part left for the first boot.

/// Plans the unit that runs `sharefs up` at boot: written and enabled as systemd does it, or, if not `wanted`, removed
/// if it is ours. `program` is the path of sharefs on the machine.
plan::Plan plan_first_boot(const mounts::BootFacts& facts, const config::Config& config, const std::string& program,
                           bool wanted);

/// Runs `up` or, if not `wanted`, `down` on the image. `timeout` is for the answers of servers, whose NFS versions go
/// into the boot entries.
Result<int> change_image(Context& context, const config::Config& config, std::chrono::milliseconds timeout,
                         bool wanted);

} // namespace sharefs::cli

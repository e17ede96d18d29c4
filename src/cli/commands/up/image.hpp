#pragma once
// The image of a node, below --root: the part of `up` that can be done in it, and the part left for the first boot.
#include "cli/context.hpp"
#include "mounts/boot.hpp"

#include <chrono>

namespace sharefs::cli {

/// Plans the unit that runs `sharefs up` at boot: written and enabled as systemd does it, or, if not `wanted`, removed
/// if it is ours. `program` is the path of sharefs on the machine.
plan::Plan plan_first_boot(const mounts::BootFacts& facts, const config::Config& config, const std::string& program,
                           bool wanted);

/// Runs `up` or, if not `wanted`, `down` on the image. `timeout` is for the answers of servers, whose NFS versions go
/// into the boot entries.
Result<int> change_image(Context& context, const config::Config& config, std::chrono::milliseconds timeout,
                         bool wanted);

} // namespace sharefs::cli

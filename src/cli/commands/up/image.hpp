#pragma once
// The image of a node, below --root: what `up` can prepare of it, and what it leaves for the first boot.
#include "cli/context.hpp"
#include "mounts/boot.hpp"

#include <chrono>

namespace sharefs::cli {

/// The unit that runs `sharefs up` when the machine boots, as systemd wants it: written and enabled, or (not `wanted`)
/// taken away where it is ours. `program`: sharefs as the machine has it.
plan::Plan plan_first_boot(const mounts::BootFacts& facts, const config::Config& config, const std::string& program,
                           bool wanted);

/// `up` or (not `wanted`) `down` of the image. `timeout`: for the answers of servers, whose versions go into the boot
/// entries.
Result<int> change_image(Context& context, const config::Config& config, std::chrono::milliseconds timeout,
                         bool wanted);

} // namespace sharefs::cli

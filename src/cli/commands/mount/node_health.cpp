#include "cli/commands/mount/node_health.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "cli/exit_code.hpp"
#include "sys/process/exit_deadline.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

namespace sharefs::cli {

namespace {

// The limits of node-problem-detector: it keeps 80 bytes of the output, and takes exit code 0 for healthy, 1 for a
// problem, and all others for unknown (pkg/custompluginmonitor/plugin). For the others every code but 0 is a problem.
constexpr std::size_t k_health_bytes = 80;
constexpr int k_exit_unknown = 2;
/// Time for everything but the mounts themselves.
constexpr std::chrono::milliseconds k_margin{1000};

/// True if jobs can use the mount. A full file system, or one that cannot be written, makes jobs fail like a missing
/// one; different options do not.
bool is_healthy(const mounts::MountState& state) {
  return mounts::is_good(state.health) && state.health != mounts::Health::full;
}

std::string health_line(const std::vector<mounts::MountState>& states) {
  const auto first = std::ranges::find_if_not(states, is_healthy);
  if (first == states.end())
    return fmt::format("sharefs: {} well", count_of(states.size(), "mount"));
  const auto others = std::count_if(first + 1, states.end(), [](const auto& state) { return !is_healthy(state); });
  const auto more = others == 0 ? "" : fmt::format(" and {} more", others);
  const auto rest = fmt::format(": {}{}", mounts::to_string(first->health), more);
  // The reason must be in the line, however long the name is.
  return "sharefs: " + fit_width(visible(name_of(first->point)), k_health_bytes / 3) + rest;
}

} // namespace

Result<int> run_node_health(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto deadline, arguments.duration("deadline"));
  if (deadline.count() <= 0)
    return fail(ErrorCode::usage, "--deadline must be greater than zero", "for example --deadline 4s");
  const sys::ExitDeadline exits(deadline, "sharefs: no answer in time\n", k_exit_unknown);
  const auto say = [&](const std::string& line) {
    context.envelope.fields["health"] = line;
    if (!context.flags.json)
      context.console.out() << line << '\n';
  };
  const auto config = context.config_if_any();
  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, config ? *config : nullptr);
  request.others = config && *config == nullptr; // without a configuration every NFS mount counts
  request.servers = false;
  request.path_deadline = std::max(deadline / 2, deadline - k_margin);
  const auto seen = config ? mounts::probe(context.system, request) : fail(config.error());
  if (!seen) {
    say(std::string("sharefs: ") + fit_width(visible(seen.error().message), k_health_bytes - 9));
    return k_exit_unknown;
  }
  add_states(context, seen->states);
  say(health_line(seen->states));
  return std::ranges::all_of(seen->states, is_healthy) ? k_exit_ok : k_exit_failed;
}

} // namespace sharefs::cli

#include "cli/commands/mount/shares.hpp"

#include "base/path.hpp"
#include "cli/commands/export/support.hpp"
#include "exports/system_directory.hpp"
#include "mounts/shares.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

const config::Mount* find_mount(const config::Config& config, const mounts::MountPoint& point) {
  const auto found = std::ranges::find(config.mounts, point.name, &config::Mount::name);
  return found == config.mounts.end() ? nullptr : &*found;
}

} // namespace

std::vector<mounts::MountPoint> ready_points(Context& context, const config::Config& config,
                                             const mounts::Observation& seen, const std::set<std::string>& good) {
  std::vector<mounts::MountPoint> points;
  for (const auto& state : seen.states) {
    if (!good.contains(state.point.target))
      continue;
    if (state.health != mounts::Health::autofs_idle)
      points.push_back(state.point);
    else if (has_shares(config, {state.point}))
      context.console.message(fmt::format("{}: an automount that nobody has used yet: its directories of `shares:` "
                                          "are left until it is mounted",
                                          mounts::name_of(state.point)));
  }
  return points;
}

WantedShares wanted_shares(sys::System& system, const config::Config& config,
                           const std::vector<mounts::MountPoint>& ready) {
  WantedShares wanted;
  for (const auto& point : ready) {
    const auto refuse = [&](const std::string& message, const std::string& hint) {
      wanted.found.push_back(mounts::about(point, Severity::error, "SF243", message, hint));
    };
    const auto* mount = find_mount(config, point);
    for (const auto& share : mount == nullptr ? std::vector<config::Share>() : mount->shares) {
      const auto path = join_path(point.target, share.path);
      auto access = directory_access(system, share.access, share.origin);
      const auto reason = exports::system_directory_reason(path);
      if (!access)
        refuse(access.error().message, access.error().hint);
      else if (point.here && !reason.empty())
        refuse(fmt::format("{} is left as it is, since {}", path, reason), "name another directory in `shares:`");
      else
        wanted.shares.push_back({point, path, std::move(*access)});
    }
  }
  return wanted;
}

std::set<std::string> with_errors(const std::vector<mounts::MountPoint>& ready, const Diagnoses& found) {
  std::set<std::string> targets;
  for (const auto& point : ready)
    if (std::ranges::any_of(found, [&](const Diagnosis& one) {
          return one.severity == Severity::error && one.subject == mounts::name_of(point);
        }))
      targets.insert(point.target);
  return targets;
}

bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points) {
  return std::ranges::any_of(points, [&](const mounts::MountPoint& point) {
    const auto* mount = find_mount(config, point);
    return mount != nullptr && !mount->shares.empty();
  });
}

} // namespace sharefs::cli

#include "cli/commands/mount/shares.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/export/support.hpp"
#include "cli/execute.hpp"
#include "exports/system_directory.hpp"
#include "mounts/shares.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace sharefs::cli {

namespace {

const config::Mount* find_mount(const config::Config& config, const mounts::MountPoint& point) {
  const auto found = std::ranges::find(config.mounts, point.name, &config::Mount::name);
  return found == config.mounts.end() ? nullptr : &*found;
}

/// As the mounts room takes them. What cannot be set is reported, and its target noted.
std::vector<mounts::Share> wanted_shares(Context& context, const config::Config& config,
                                         const std::vector<mounts::MountPoint>& ready, std::set<std::string>& failed) {
  std::vector<mounts::Share> wanted;
  Diagnoses found;
  for (const auto& point : ready) {
    const auto refuse = [&](const std::string& message, const std::string& hint) {
      found.push_back(mounts::about(point, Severity::error, "SF243", message, hint));
      failed.insert(point.target);
    };
    const auto* mount = find_mount(config, point);
    for (const auto& share : mount == nullptr ? std::vector<config::Share>() : mount->shares) {
      const auto path = join_path(point.target, share.path);
      auto access = directory_access(context.system, share.access, share.origin);
      const auto reason = exports::system_directory_reason(path);
      if (!access)
        refuse(access.error().message, access.error().hint);
      else if (point.here && !reason.empty())
        refuse(fmt::format("{} is left as it is, since {}", path, reason), "name another directory in `shares:`");
      else
        wanted.push_back({point, path, std::move(*access)});
    }
  }
  context.report(found);
  return wanted;
}

void note_failed(const std::vector<mounts::MountPoint>& ready, const Diagnoses& found, std::set<std::string>& failed) {
  for (const auto& point : ready)
    if (std::ranges::any_of(found, [&](const Diagnosis& one) {
          return one.severity == Severity::error && one.subject == mounts::name_of(point);
        }))
      failed.insert(point.target);
}

} // namespace

bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points) {
  return std::ranges::any_of(points, [&](const mounts::MountPoint& point) {
    const auto* mount = find_mount(config, point);
    return mount != nullptr && !mount->shares.empty();
  });
}

Result<SharedDirectories> share_directories(Context& context, const config::Config& config,
                                            const std::vector<mounts::MountPoint>& ready,
                                            std::chrono::milliseconds deadline) {
  SharedDirectories result;
  const auto wanted = wanted_shares(context, config, ready, result.failed);
  if (wanted.empty())
    return result;
  auto& system = context.system;
  const auto self = system.identity();
  mounts::SharePlan planned;
  Diagnoses said;
  const auto propose = [&]() -> Result<Proposal> {
    planned = mounts::plan_shares(wanted, mounts::probe_shares(system, wanted, deadline), self);
    if (planned.diagnoses != said)
      context.report(planned.diagnoses);
    said = planned.diagnoses;
    return Proposal{planned.plan, planned.diagnoses.empty() ? "all of `shares:` is there: nothing to do"
                                                            : "no more of `shares:` can be set now"};
  };
  const auto executed = execute_further(context, propose);
  if (!executed)
    return fail(executed.error());
  note_failed(ready, planned.diagnoses, result.failed);
  if (executed->stopped())
    result.stopped = executed->exit_code;
  if (!executed->applied())
    return result;
  for (const auto& step : executed->report->results)
    if (step.error)
      for (const auto& point : ready)
        if (is_under(plan::touched_paths(planned.plan.steps[step.step].action).front(), point.target))
          result.failed.insert(point.target);
  const auto made = mounts::diagnose_made(planned.plan, wanted, mounts::probe_shares(system, wanted, deadline), self);
  context.report(made);
  note_failed(ready, made, result.failed);
  if (made.empty() || executed->report->journal_id.empty())
    return result;
  if (auto undone = roll_back(context, executed->report->journal_id, "the directories are not as wanted"); !undone)
    return fail(undone.error());
  context.envelope.fields["rolled_back"] = true;
  return result;
}

} // namespace sharefs::cli

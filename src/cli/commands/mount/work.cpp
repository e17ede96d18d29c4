#include "cli/commands/mount/support.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/say.hpp"
#include "exports/system_directory.hpp"
#include "plan/check_action.hpp"

#include <algorithm>

namespace sharefs::cli {

namespace {

constexpr std::chrono::milliseconds k_longest_look{2000}, k_one_mount_deadline{30'000}, k_pending_deadline{500};

/// Removes the steps for directories that already are ordinary ones. A directory on which something is mounted is not
/// examined.
void drop_ordinary_directories(sys::System& system, const sys::MountTable& table, plan::Plan& plan) {
  std::erase_if(plan.steps, [&](const plan::Step& step) {
    const auto* flag = std::get_if<plan::SetImmutable>(&step.action);
    if (flag == nullptr || table.at(flag->path) != nullptr)
      return false;
    const auto checked = plan::check_action(*flag, system);
    return checked && checked->already;
  });
}

} // namespace

std::chrono::milliseconds MountScope::path_deadline() const {
  return std::min(timeout, k_longest_look);
}

Result<MountWork> plan_mount_work(Context& context, const config::Config& config,
                                  const std::vector<mounts::MountPoint>& wanted, const MountScope& scope) {
  mounts::ProbeRequest request;
  request.wanted = wanted;
  request.want_access = request.targets = true;
  request.server_deadline = scope.timeout;
  request.path_deadline = scope.path_deadline();
  TRY_ASSIGN(auto seen, observe(context, request));
  MountWork work{std::move(seen), {}};
  work.plan = mounts::plan_mounts(work.seen, wanted, k_one_mount_deadline, scope.remount);
  const auto at_boot = scope.boot || scope.caches ? mounts::read_boot_facts(context.system) : mounts::BootFacts{};
  if (scope.boot) {
    const auto boot = mounts::plan_boot(context.system, at_boot, work.seen, work.plan.blocked);
    mounts::append(work.plan.diagnoses, boot.diagnoses);
    work.plan.plan.add(boot.plan);
  }
  if (scope.caches) { // a run for all mounts of sharefs.yaml
    mounts::append(work.plan.diagnoses, mounts::diagnose_left_at_boot(at_boot, wanted));
    work.plan.plan.add(
        cachefix::plan_local_directories(context.system, config.caches.local, exports::system_directory_reason));
    auto images = staged_images(context, &config);
    mounts::append(work.plan.diagnoses, conda::take_out_damaged(context.system, images, say_to(context)));
    work.plan.plan.add(conda::mount_staged(images));
    if (scope.boot && !images.empty())
      plan_staged_unit(context, true, work.plan.plan);
  }
  return work;
}

nlohmann::ordered_json mounts_json(const MountWork& work, const std::set<std::string>& good, bool applied) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& state : work.seen.states) {
    const auto& target = state.point.target;
    auto one = to_json(state);
    if (contains(work.plan.planned, target))
      one["outcome"] = !applied ? "planned" : good.contains(target) ? "mounted" : "failed";
    else
      one["outcome"] = contains(work.plan.right, target) ? "unchanged" : "blocked";
    json.push_back(std::move(one));
  }
  return json;
}

Result<UnmountWork> plan_unmount_work(Context& context, std::vector<mounts::MountPoint> points,
                                      const mounts::UnmountOptions& options, bool forget) {
  TRY_ASSIGN(auto table, context.system.mounts());
  const auto pending = mounts::find_pending(context.system, k_pending_deadline);
  UnmountWork work{std::move(table), mounts::read_boot_facts(context.system), {}};
  if (forget) // an entry of sharefs can be forgotten although its target is not mounted now
    for (const auto& entry : work.boot.entries)
      for (auto& point : points)
        if (entry.ours && point.name.empty() && point.target == entry.target)
          point.name = point.target;
  work.plan = mounts::plan_unmounts(work.table, points, pending, options);
  if (forget) {
    mounts::forget_at_boot(work.boot, mounts::read_boot_host(context.system), work.table, points, work.plan);
    drop_ordinary_directories(context.system, work.table, work.plan.plan);
  }
  return work;
}

void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report) {
  std::vector<sys::MountEntry> busy;
  for (const auto& result : report.results) {
    const auto* action = std::get_if<plan::Unmount>(&plan.steps[result.step].action);
    const auto* entry = action == nullptr ? nullptr : table.at(action->target);
    if (entry != nullptr && result.error && result.error->code == ErrorCode::busy)
      busy.push_back(*entry);
  }
  report_holders(context, busy, [&](const std::string& target, const mounts::HolderReport& holders) {
    context.report({mounts::diagnose_busy(target, holders)});
  });
}

} // namespace sharefs::cli

// sharefs umount: plain first; who is in the way is listed; force and lazy only when asked for.
#include "base/text.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/exit_code.hpp"
#include "mounts/boot.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::chrono::milliseconds k_pending_deadline{500};

Diagnosis busy_mount(const std::string& target, const mounts::HolderReport& report) {
  const auto busy = [&target](std::string message, std::string hint) {
    return Diagnosis{Severity::error, "SF229", target, target + " is " + std::move(message), std::move(hint), ""};
  };
  if (!report.holders.empty())
    return busy("in use by " +
                    (report.holders.size() == 1 ? "1 process" : fmt::format("{} processes", report.holders.size())),
                "end them, or use --lazy: they keep the mount until they end");
  if (!report.waiting.empty())
    return busy("busy; processes that wait for an NFS server may be the reason",
                "with the server away, --force --lazy ends their waiting and detaches the mount");
  return busy("busy, but no process that uses it was seen",
              "data of a writer that has ended may still be on its way to the server: try again in a moment; else a "
              "loop device, a swap file or an overlay uses it, and --lazy detaches it all the same");
}

/// Mounts that were busy: who holds them.
void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report) {
  std::vector<sys::MountEntry> busy;
  for (const auto& target : busy_targets(plan, report))
    if (const auto* entry = table.at(target))
      busy.push_back(*entry);
  report_holders(context, busy, [&](const std::string& target, const mounts::HolderReport& holders) {
    context.report({busy_mount(target, holders)});
  });
}

/// What mounts one of `points` again at boot: taken away by --forget, or if the person says so; else said.
void forget_at_boot(Context& context, const Arguments& arguments, const mounts::BootFacts& facts,
                    const sys::MountTable& table, std::vector<mounts::MountPoint> points, mounts::UnmountPlan& plan) {
  bool ours = false;
  for (const auto& entry : facts.entries)
    if (std::ranges::count(points, entry.target, &mounts::MountPoint::target) > 0) {
      ours = ours || entry.ours;
      context.console.message(fmt::format("{} is mounted again at boot by {}{}", entry.target, entry.origin,
                                          entry.ours ? "" : ", which sharefs did not write and leaves alone"));
    }
  const auto& flags = context.flags;
  const bool asks =
      ours && context.console.options().in_terminal && !flags.yes && !flags.json && !flags.dry_run && !flags.check;
  if (!arguments.flag("forget") && !(asks && context.console.confirm("Take that away, too?")))
    return;
  std::erase_if(points, [&](const auto& point) { return std::ranges::count(plan.blocked, point.target) > 0; });
  for (auto& point : points)
    point.boot = mounts::BootWay::none;
  const auto boot = mounts::plan_boot(facts, mounts::boot_host(context.system), points);
  mounts::append(plan.plan.steps, boot.plan.steps);
  for (const auto& point : points) {
    // A look at an automount point would mount: only when ours has been stopped.
    const bool automounted = std::ranges::any_of(table.entries(), [&](const sys::MountEntry& one) {
      return one.target == point.target && one.fs_type == "autofs";
    });
    if (!automounted || !boot.plan.empty())
      plan.plan.add(automounted ? boot.plan.steps.front().group : point.target, "an ordinary directory again",
                    plan::SetImmutable{point.target, false});
  }
}

Result<int> run_umount(Context& context, const Arguments& arguments) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  if (*config == nullptr && arguments.flag("all"))
    return fail(ErrorCode::config, "--all means the mounts of sharefs.yaml, and there is none",
                "name the mount points, or run `sharefs init`");
  const auto chosen = choose_mounts(context, *config, arguments, true);
  if (!chosen)
    return fail(chosen.error());
  if (auto root = require_root_for_mounts(context); !root)
    return fail(root.error());
  const mounts::UnmountOptions options{arguments.flag("force"), arguments.flag("lazy"), chosen->timeout};

  const auto table = context.system.mounts();
  if (!table)
    return fail(table.error());
  const auto pending = mounts::find_pending(context.system, k_pending_deadline);
  const auto boot = mounts::boot_facts(context.system);
  auto points = chosen->points;
  if (arguments.flag("forget")) // of what sharefs mounts at boot, nothing needs to be mounted now
    for (const auto& entry : boot.entries)
      for (auto& point : points)
        if (entry.ours && point.name.empty() && point.target == entry.target)
          point.name = point.target;
  auto plan = mounts::plan_unmounts(*table, points, pending, options);
  context.report(plan.diagnoses);
  forget_at_boot(context, arguments, boot, *table, points, plan);
  const auto executed =
      execute(context, plan.plan, plan.blocked.empty() ? "nothing is mounted there" : "nothing was unmounted");
  if (!executed)
    return fail(executed.error());
  std::size_t good = plan.gone.size() + plan.planned.size();
  if (executed->applied()) {
    report_busy(context, *table, plan.plan, *executed->report);
    good = plan.gone.size() + unmounted_by(plan.plan, *executed->report).size();
  }
  if (executed->stopped())
    return executed->exit_code;
  return exit_code_for(good, chosen->points.size() - good);
}

} // namespace

extern const CommandSpec k_umount_command{
    .name = "umount",
    .summary = "Unmount shares, or any NFS mount",
    .description =
        "Unmounts by name or by mount point (the latter also without sharefs.yaml; NFS only). A mount in use is left, "
        "and the processes that use it are listed. It never hangs, not even with a dead server. What mounts it again "
        "at boot is named; --forget, or your answer, takes it away.",
    .example = "sharefs umount share\n"
               "sharefs umount /data/share --lazy          # detach; programs keep it until they end\n"
               "sharefs umount share --force --lazy        # the server is gone for good",
    .effect = Effect::changes,
    .positional = {.name = "NAME|PATH", .help = "mounts by name or mount point"},
    .options = {{.names = "--all", .help = "every mount of sharefs.yaml"},
                {.names = "--force", .help = "fail the requests that wait for the server (unwritten data is lost)"},
                {.names = "--lazy", .help = "detach at once, with everything mounted below it"},
                {.names = "--forget", .help = "also take away what sharefs wrote to mount it at boot"},
                {.names = "--timeout", .value = "TIME", .help = "how long one unmount may take", .fallback = "10s"}},
    .run = run_umount,
};

} // namespace sharefs::cli

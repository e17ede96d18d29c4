// sharefs mount: mounts what sharefs.yaml lists; right mounts are left alone, wrong ones are reported.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/up/on_mounts.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Result<int> run_mount(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  TRY_ASSIGN(const auto wanted, choose_mounts(context, config, arguments, false));
  // A user who is not root may make the directories of `shares:`; all else needs root.
  const bool is_root = context.system.identity().uid == 0;
  if (auto root = require_root_for_mounts(context); !root && !has_shares(*config, wanted))
    return fail(root.error());

  const MountScope scope{timeout, arguments.flag("remount"), is_root && !arguments.flag("now-only"),
                         is_root && arguments.flag("all")};
  TRY_ASSIGN(auto work, plan_mount_work(context, *config, wanted, scope));
  auto& [seen, plan] = work;
  context.report(plan.diagnoses);
  report_holders_of_different(context, seen);
  for (const auto& point : wanted)
    if (contains(plan.planned, point.target) && has_shares(*config, {point}))
      plan.plan.notes.push_back(
          fmt::format("{}: its directories of `shares:` are planned once it is mounted", point.name));
  if (!plan.plan.empty())
    TRY(require_root_for_mounts(context));

  const auto count = count_of(wanted.size(), "mount");
  const auto nothing = wanted.empty()         ? "there are no mounts in sharefs.yaml"
                       : plan.blocked.empty() ? count + ": nothing to do"
                                              : "nothing can be mounted now";
  TRY_ASSIGN(const auto executed, execute(context, plan.plan, nothing));
  std::set<std::string> good(plan.right.begin(), plan.right.end());
  if (executed.applied()) {
    const auto mounted = mounted_by(plan.plan, *executed.report);
    good.insert(mounted.begin(), mounted.end());
    context.report(mounts::diagnose_mounted(context.system, seen, mounted, scope.path_deadline()));
  }
  context.envelope.fields["mounts"] = mounts_json(work, good, executed.applied());
  if (executed.stopped())
    return executed.exit_code;
  OnMounts on;
  const auto replan = [&]() -> Result<void> {
    TRY_ASSIGN(on, plan_on_mounts(context, *config, nullptr, work, good, scope.path_deadline()));
    context.report(on.found);
    return {};
  };
  TRY_ASSIGN(const auto shared, execute_on_mounts(context, on, replan));
  if (shared.stopped())
    return shared.exit_code;
  if (shared.applied())
    TRY(check_shares_made(context, on, scope.path_deadline()));
  const bool shares_failed = on.failed > 0 || shared.exit_code != k_exit_ok;
  if (scope.caches)
    if (const auto staged = mount_on_shares(context, *config, true); !staged || *staged != k_exit_ok)
      return staged;
  if (context.flags.dry_run)
    return std::max(exit_code_for(plan.right.size() + plan.planned.size(), plan.blocked.size()),
                    shares_failed ? k_exit_failed : k_exit_ok);
  if (arguments.flag("verify")) {
    std::vector<mounts::MountPoint> points;
    for (const auto& state : seen.states)
      if (good.contains(state.point.target))
        points.push_back(state.point);
    for (const auto& target : verify(context, points, timeout))
      good.erase(target);
  }
  const auto right = good.size() - std::min(good.size(), shares_failed ? std::max<std::size_t>(on.failed, 1) : 0);
  const std::size_t failed_images = executed.applied() ? count_failed_images(plan.plan, *executed.report) : 0;
  return exit_code_for(right, wanted.size() - right + failed_images);
}

} // namespace

extern const CommandSpec k_mount_command{
    .name = "mount",
    .summary = "Mount the shares of sharefs.yaml",
    .description =
        "Asks the servers first and names the stage that fails, so that no mount hangs on a dead server. Mounts that "
        "are right are left alone; wrong ones (another source, other options, stale, hung) are reported with the "
        "command that cures them, and not touched. All mounts are made at the same time. What has `boot:` in "
        "sharefs.yaml comes back after a reboot: by systemd units that wait for the server, by fstab, or by rc.local. "
        "--all also makes the directories of `caches.local` (1777), and mounts what `conda stage` has staged. "
        "Directories of `shares:` are made once their mount "
        "is there, as a second step that is shown and asked for; "
        "where the server lets root do nothing, a user who may write there can run it, too.",
    .example = "sharefs mount share            # one\n"
               "sharefs mount --all --verify   # all, and write a test file to each\n"
               "sharefs mount --all --dry-run  # what would be done",
    .changes = true,
    .positional = {.name = "NAME", .help = "mounts by name or mount point"},
    .options = {{.names = "--all", .help = "every mount of sharefs.yaml"},
                {.names = "--verify", .help = "then write, read back and delete a test file on each"},
                {.names = "--remount",
                 .help = "change ro, nosuid, nodev and noexec of mounts in use, as sharefs.yaml says"},
                {.names = "--now-only", .help = "leave alone what is mounted at boot"},
                k_servers_timeout},
    .on_nodes = true,
    .run = run_mount,
};

} // namespace sharefs::cli

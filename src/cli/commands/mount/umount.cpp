// sharefs umount: tries a plain unmount first and lists the processes that prevent it; force and lazy only on request.
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/support.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Result<int> run_umount(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config_if_any());
  if (config == nullptr && arguments.flag("all"))
    return fail(ErrorCode::config, "--all means the mounts of sharefs.yaml, and there is none",
                "name the mount points, or run `sharefs init`");
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  TRY_ASSIGN(const auto chosen, choose_mounts(context, config, arguments, true));
  TRY(require_root_for_mounts(context));
  const auto staged = arguments.flag("all") ? staged_images(context, config) : std::vector<conda::StagedImage>{};
  const mounts::UnmountOptions options{arguments.flag("force"), arguments.flag("lazy"), timeout, staged_binds(staged)};

  const bool forget = arguments.flag("forget");
  TRY_ASSIGN(auto work, plan_unmount_work(context, chosen, options, forget ? Forget::named : Forget::nothing));
  auto& plan = work.plan;
  conda::unmount_staged(staged, options.lazy, work.table, plan.plan);
  context.report(plan.diagnoses);
  for (const auto& entry : work.boot.entries)
    if (!(entry.ours && forget) && std::ranges::count(chosen, entry.target, &mounts::MountPoint::target) > 0)
      context.console.message(
          fmt::format("{} is mounted again at boot by {}{}", entry.target, entry.origin,
                      entry.ours ? "; --forget takes that away" : ", which sharefs did not write and leaves alone"));
  TRY_ASSIGN(const auto executed,
             execute(context, plan.plan, plan.blocked.empty() ? "nothing is mounted there" : "nothing was unmounted"));
  std::size_t good = plan.right.size() + plan.planned.size(), failed_images = 0;
  if (executed.applied()) {
    failed_images = count_failed_images(plan.plan, *executed.report);
    report_busy(context, work.table, plan.plan, *executed.report);
    const auto unmounted = unmounted_by(plan.plan, *executed.report); // also has copies over directories of the share
    good = plan.right.size() +
           static_cast<std::size_t>(std::ranges::count_if(
               chosen, [&](const mounts::MountPoint& point) { return unmounted.contains(point.target); }));
  }
  if (executed.stopped())
    return executed.exit_code;
  return exit_code_for(good, chosen.size() - good + failed_images);
}

} // namespace

extern const CommandSpec k_umount_command{
    .name = "umount",
    .summary = "Unmount shares, or any NFS mount",
    .description =
        "Unmounts by name or by mount point (the latter also without sharefs.yaml; NFS only). A mount in use is left, "
        "and the processes that use it are listed. It never hangs, not even with a dead server. What mounts it again "
        "at boot is named; --forget takes it away.",
    .example = "sharefs umount share\n"
               "sharefs umount /data/share --lazy          # detach; programs keep it until they end\n"
               "sharefs umount share --force --lazy        # the server is gone for good",
    .changes = true,
    .positional = {.name = "NAME|PATH", .help = "mounts by name or mount point"},
    .options = {{.names = "--all", .help = "every mount of sharefs.yaml, and every staged image"},
                {.names = "--force", .help = "fail the requests that wait for the server (unwritten data is lost)"},
                {.names = "--lazy", .help = "detach at once, with everything mounted below it"},
                {.names = "--forget", .help = "also take away what sharefs wrote to mount it at boot"},
                {.names = "--timeout", .value = "TIME", .help = "how long one unmount may take", .fallback = "10s"}},
    .on_nodes = true,
    .run = run_umount,
};

} // namespace sharefs::cli

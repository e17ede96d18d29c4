// sharefs recover: from the check whether a mount is really stale to a mount that works again.
#include "mounts/recover.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/support.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

mounts::ProbeRequest recovery_request(const std::vector<mounts::MountPoint>& selected,
                                      std::chrono::milliseconds timeout, bool every) {
  mounts::ProbeRequest request;
  request.wanted = selected; // those that sharefs.yaml has; the others have only a mount point
  std::erase_if(request.wanted, [](const mounts::MountPoint& point) { return point.server.empty(); });
  // --all also means every NFS mount that sharefs.yaml does not have; a path that it does not have is found in the
  // mount table.
  request.others = every || request.wanted.size() < selected.size();
  request.want_access = request.targets = true;
  request.server_deadline = timeout;
  request.path_deadline = std::min(timeout, mounts::k_recovery_deadline);
  return request;
}

Result<int> run_recover(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config_if_any());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  TRY_ASSIGN(const auto selected, choose_mounts(context, config, arguments, true));
  TRY(require_root_for_mounts(context));
  TRY_ASSIGN(const auto table, context.system.mounts());
  for (const auto& point : selected)
    if (const auto* entry = table.at(point.target); point.server.empty() && (entry == nullptr || !sys::is_nfs(*entry)))
      return fail(ErrorCode::not_found, fmt::format("no NFS mount is on {}", point.target), // nor in sharefs.yaml
                  "run `sharefs status` to see those that are");

  TRY_ASSIGN(auto seen, observe(context, recovery_request(selected, timeout, arguments.flag("all"))));
  if (!arguments.flag("all"))
    std::erase_if(seen.states, [&](const mounts::MountState& state) {
      return std::ranges::find(selected, state.point.target, &mounts::MountPoint::target) == selected.end();
    });
  auto recovery = probe_recovery(context, std::move(seen));
  recovery.force = arguments.flag("force");
  recovery.moved = arguments.flag("moved");
  recovery.staged = staged_binds(staged_images(context, config));
  const auto plan = mounts::plan_recovery(recovery);
  context.report(plan.diagnoses);
  report_holders_of_different(context, recovery.seen);
  const bool well = plan.blocked.empty() && !has_errors(plan.diagnoses);
  TRY_ASSIGN(const auto executed, execute(context, plan.plan, well ? "all mounts are well" : "nothing was changed"));
  std::set<std::string> unmounted;
  if (executed.applied())
    unmounted = unmounted_by(plan.plan, *executed.report);
  add_states(context, recovery.seen.states);
  if (executed.stopped())
    return executed.exit_code;

  std::set<std::string> good(plan.right.begin(), plan.right.end());
  if (executed.applied()) {
    auto check = mounts::check_recovery(context.system, recovery, plan, std::min(timeout, mounts::k_recovery_deadline));
    context.report(check.diagnoses);
    good.merge(check.good);
    std::erase_if(unmounted, [&](const auto& target) { return std::ranges::count(plan.only_unmounted, target) == 0; });
    good.merge(unmounted);
  } else {
    good.insert(plan.planned.begin(), plan.planned.end());
    good.insert(plan.only_unmounted.begin(), plan.only_unmounted.end());
  }
  if (config != nullptr && executed.applied())
    if (const auto copies = mount_on_shares(context, *config, false); !copies || *copies != k_exit_ok)
      return copies;
  const auto total = plan.right.size() + plan.planned.size() + plan.only_unmounted.size() + plan.blocked.size();
  return exit_code_for(good.size(), total - good.size());
}

} // namespace

extern const CommandSpec k_recover_command{
    .name = "recover",
    .summary = "Bring stale mounts back",
    .description =
        "A mount is called stale only if several answers agree and its server answers; then it is detached "
        "(programs that use it are listed) and mounted again. A hung mount is no stale one: while its server is "
        "away nothing is changed, because programs go on by themselves when it returns. What is missing is mounted.",
    .example = "sharefs recover --all\n"
               "sharefs recover share --force   # give up what waits for a server that will not return",
    .changes = true,
    .positional = {.name = "NAME|PATH", .help = "mounts by name or mount point"},
    .options = {{.names = "--all", .help = "every mount of sharefs.yaml, and every other NFS mount"},
                {.names = "--force", .help = "detach hung mounts too; unwritten data is lost"},
                {.names = "--moved",
                 .help =
                     "remount also what hangs at an address that its server's name has left; unwritten data is lost"},
                k_servers_timeout},
    .on_nodes = true,
    .run = run_recover,
};

} // namespace sharefs::cli

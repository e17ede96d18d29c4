// sharefs recover: the ladder from "is it really stale?" to a mount that works again.
#include "mounts/recover.hpp"
#include "base/text.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/exit_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace sharefs::cli {

namespace {

/// The plan and the report of two executions as one, for the JSON document.
void join_envelope(ui::Envelope& envelope, plan::Plan first, plan::Report first_report) {
  if (!envelope.plan || !envelope.report)
    return;
  const auto offset = first.steps.size();
  first.steps.insert(first.steps.end(), envelope.plan->steps.begin(), envelope.plan->steps.end());
  first.notes.insert(first.notes.end(), envelope.plan->notes.begin(), envelope.plan->notes.end());
  for (auto result : envelope.report->results) {
    result.step += offset;
    first_report.results.push_back(std::move(result));
  }
  first_report.journal_id = envelope.report->journal_id;
  first_report.interrupted = envelope.report->interrupted;
  envelope.plan = std::move(first);
  envelope.report = std::move(first_report);
}

/// Somebody who was not seen uses a stale mount: only those mounts once more, detached this time.
Result<Executed> detach_busy(Context& context, const mounts::RecoveryRequest& recovery,
                             const std::set<std::string>& busy, const plan::Plan& first,
                             const plan::Report& first_report) {
  context.console.message("in use by somebody who was not seen, so it is detached: " +
                          join({busy.begin(), busy.end()}, ", "));
  auto rest = recovery.seen;
  for (auto& state : rest.states)
    if (!busy.contains(state.point.target))
      state.health = mounts::Health::healthy;
  const mounts::RecoveryRequest again{
      rest, recovery.wanted, recovery.looks, recovery.holders, recovery.force, recovery.moved, true};
  auto executed = execute(context, mounts::plan_recovery(again).plan, "nothing was changed");
  if (executed)
    join_envelope(context.envelope, first, first_report);
  return executed;
}

/// The mounts that were to be brought back, as they are now.
Diagnoses check(Context& context, const mounts::Observation& before, const mounts::ProbeRequest& request,
                const std::vector<std::string>& planned, std::set<std::string>& good) {
  auto again = request;
  again.servers = again.targets = false;
  again.others = true;
  const auto after = mounts::probe(context.system, again);
  if (!after)
    return {{Severity::error, "SF226", "", after.error().message, after.error().hint, ""}};
  Diagnoses all;
  for (const auto& target : planned) {
    const auto is_it = [&](const mounts::MountState& state) { return state.point.target == target; };
    const auto was = std::find_if(before.states.begin(), before.states.end(), is_it);
    const auto now = std::find_if(after->states.begin(), after->states.end(), is_it);
    if (was == before.states.end())
      continue;
    mounts::MountState missing;
    missing.point = was->point;
    const auto found = mounts::check_recovered(*was, now == after->states.end() ? missing : *now);
    if (found.empty())
      good.insert(target);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

/// Paths that nobody configured: kept only if an NFS mount is there.
Result<void> check_unknown(const sys::MountTable& table, const std::vector<mounts::MountPoint>& selected) {
  for (const auto& request : selected) {
    const auto* entry = table.at(request.target);
    if (request.server.empty() && (entry == nullptr || !sys::is_nfs(*entry)))
      return fail(ErrorCode::not_found, fmt::format("no NFS mount is on {}", request.target),
                  "run `sharefs status` to see those that are");
  }
  return {};
}

Result<int> run_recover(Context& context, const Arguments& arguments) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  const auto chosen = choose_mounts(context, *config, arguments, true);
  if (!chosen)
    return fail(chosen.error());
  if (auto root = require_root_for_mounts(context); !root)
    return fail(root.error());
  const auto& [selected, timeout] = *chosen;
  const auto table = context.system.mounts();
  if (!table)
    return fail(table.error());
  if (auto known = check_unknown(*table, selected); !known)
    return fail(known.error());

  const bool force = arguments.flag("force");
  mounts::ProbeRequest request;
  std::set<std::string> named;
  for (const auto& one : selected) {
    named.insert(one.target);
    if (!one.server.empty())
      request.wanted.push_back(one);
  }
  // --all without a configuration means every NFS mount; a path that nobody configured is found in the table.
  const bool every = arguments.flag("all");
  request.others = every || request.wanted.size() < selected.size();
  request.want_access = request.targets = true;
  request.server_deadline = timeout;
  request.path_deadline = std::min(timeout, k_recheck_deadline);
  auto seen = observe(context, request);
  if (!seen)
    return fail(seen.error());
  if (!every)
    std::erase_if(seen->states, [&](const mounts::MountState& state) { return !named.contains(state.point.target); });

  const auto looks = look_again(context, *seen);
  const auto holders = holders_of_stale(context, *seen);
  const mounts::RecoveryRequest recovery{*seen, request.wanted, looks, holders, force, arguments.flag("moved")};
  const auto plan = mounts::plan_recovery(recovery);
  context.report(plan.diagnoses);
  report_holders_of_different(context, *seen);
  const bool well = plan.waiting.empty() && !has_errors(plan.diagnoses);
  const auto* nothing = well ? "all mounts are well" : "nothing was changed";
  auto executed = execute(context, plan.plan, nothing);
  if (!executed)
    return fail(executed.error());
  std::set<std::string> unmounted;
  if (executed->applied()) {
    unmounted = unmounted_by(plan.plan, *executed->report);
    if (const auto busy = busy_targets(plan.plan, *executed->report); !busy.empty()) {
      executed = detach_busy(context, recovery, busy, plan.plan, plan::Report(*executed->report));
      if (!executed)
        return fail(executed.error());
    }
  }
  put_states(context, seen->states);
  if (executed->stopped())
    return executed->exit_code;

  std::set<std::string> good(plan.well.begin(), plan.well.end());
  if (executed->applied()) {
    context.report(check(context, *seen, request, plan.planned, good));
    for (const auto& target : plan.given_up)
      if (unmounted.contains(target))
        good.insert(target);
  } else {
    good.insert(plan.planned.begin(), plan.planned.end());
    good.insert(plan.given_up.begin(), plan.given_up.end());
  }
  const auto total = plan.well.size() + plan.planned.size() + plan.given_up.size() + plan.waiting.size();
  return exit_code_for(good.size(), total - good.size());
}

} // namespace

extern const CommandSpec k_recover_command{
    .name = "recover",
    .summary = "Bring stale mounts back",
    .description =
        "A mount is called stale only if several answers agree and its server answers; then it is unmounted (detached "
        "if programs use it, and they are listed) and mounted again. A hung mount is no stale one: while its server is "
        "away nothing is changed, because programs go on by themselves when it returns. What is missing is mounted.",
    .example = "sharefs recover --all\n"
               "sharefs recover share --force   # give up what waits for a server that will not return",
    .effect = Effect::changes,
    .positional = {.name = "NAME|PATH", .help = "mounts by name or mount point"},
    .options = {{.names = "--all", .help = "every mount of sharefs.yaml, and every other NFS mount"},
                {.names = "--force", .help = "detach hung mounts too; unwritten data is lost"},
                {.names = "--moved",
                 .help =
                     "remount also what hangs at an address that its server's name has left; unwritten data is lost"},
                {.names = "--timeout",
                 .value = "TIME",
                 .help = "how long to wait for the servers' answers",
                 .fallback = "5s"}},
    .run = run_recover,
};

} // namespace sharefs::cli

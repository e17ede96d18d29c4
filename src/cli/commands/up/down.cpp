// sharefs down: undoes what `up` has made on this host. Nothing that holds data is touched.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/part.hpp"
#include "cli/execute.hpp"
#include "mounts/watch/daemon.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Lists what is left because it holds data, or may be seen on other hosts.
std::string left_as_it_is(const config::Config& config, bool has_exported) {
  std::vector<std::string> left;
  if (has_exported)
    left.emplace_back("the directories that were exported, and the NFS server");
  if (config.conda)
    left.emplace_back("the links in homes (`sharefs conda unlink --all` removes them)");
  left.push_back(fmt::format("caches in {}", join(config.caches.local, ", ")));
  return "left as they are: " + join(left, "; ");
}

/// Adds the steps that withdraw the exports.
void add_withdrawal(const plan::Plan& exports, plan::Plan& plan) {
  for (auto step : exports.steps) {
    step.group.clear(); // last, after what is bound from the exported directories
    plan.steps.push_back(std::move(step));
  }
  mounts::append(plan.notes, exports.notes);
  plan.unnamed_last = !exports.empty();
}

/// Takes a running host down.
Result<int> take_down(Context& context, const config::Config& config, mounts::UnmountOptions how) {
  const auto say = say_to(context);
  // nullopt: sharefs exports nothing on this host
  TRY_ASSIGN(const auto request, find_exports(context.system, config, find_own_servers(context.system, config), true));
  exports::Proposed proposed;
  UnmountWork work;
  const auto propose = [&]() -> Result<Proposal> {
    Proposal proposal{{}, "nothing of sharefs.yaml is up here: nothing to do"};
    auto& plan = proposal.plan;
    const auto staged = staged_images(context, &config);
    how.go_first = staged_binds(staged);
    TRY_ASSIGN(work, plan_unmount_work(context, mount_points(context.system, &config), how, Forget::all));
    context.report(work.plan.diagnoses);
    if (config.watch)
      plan = mounts::watch::plan_daemon(mounts::watch::probe_daemon(context.system), false);
    plan.add(plan_first_boot(work.boot, config, "", false));
    plan.add(work.plan.plan);
    conda::unmount_staged(staged, how.lazy, work.table, plan);
    plan_staged_unit(context, false, plan);
    if (!work.plan.blocked.empty())
      proposal.nothing = "nothing more can be taken back now";
    if (request) {
      TRY(exports::propose(context.system, *request, proposed, say));
      add_withdrawal(proposed.plan, plan);
    }
    if (!plan.empty())
      plan.notes.push_back(left_as_it_is(config, request && !proposed.actual.files.own.value_or("").empty()));
    return proposal;
  };
  TRY_ASSIGN(const auto executed, execute(context, propose));
  std::size_t good = work.plan.right.size() + work.plan.planned.size();
  std::size_t bad = work.plan.blocked.size();
  if (executed.applied()) {
    report_busy(context, work.table, *context.envelope.plan, *executed.report);
    good = executed.report->count_good();
    bad += executed.report->results.size() - good;
  }
  if (executed.stopped())
    return executed.exit_code;
  if (executed.applied() && executed.report->ok() && request) {
    TRY_ASSIGN(const auto found, exports::verify(context.system, *request, proposed, say));
    context.report(found);
    bad += has_errors(found) ? 1 : 0;
  }
  return exit_code_for(good, bad);
}

Result<int> run_down(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  TRY(require_root(context, "only root can take a host down"));
  if (context.flags.root != "/")
    return change_image(context, *config, timeout, false);
  return take_down(context, *config, {arguments.flag("force"), arguments.flag("lazy"), timeout});
}

} // namespace

extern const CommandSpec k_down_command{
    .name = "down",
    .summary = "Take back what `up` has made of this host",
    .description =
        "The daemon, the mounts with all that brings them back at boot (also what an earlier sharefs.yaml has left), "
        "and at last the exports. A mount in use is left, and the processes that use it are listed; then the exports "
        "stay, too. Nothing that holds data is touched: directories that were exported, environments, caches, and the "
        "links in homes, which other hosts may see as well. `sharefs up` brings all of it back.",
    .example = "sharefs down --dry-run            # what would be taken back\n"
               "sharefs down --yes",
    .changes = true,
    .options = {{.names = "--force", .help = "as of `umount`: fail the requests that wait for a server"},
                {.names = "--lazy", .help = "as of `umount`: detach at once, with everything mounted below it"},
                {.names = "--timeout", .value = "TIME", .help = "how long one unmount may take", .fallback = "10s"}},
    .on_nodes = true,
    .run = run_down,
};

} // namespace sharefs::cli

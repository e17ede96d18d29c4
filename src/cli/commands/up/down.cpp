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

/// One run on a running host.
class TakeDown {
 public:
  TakeDown(Context& context, const config::Config& config, const mounts::UnmountOptions& how)
      : m_context(context), m_config(config), m_say(say_to(context)), m_how(how) {}

  Result<int> run() {
    TRY_ASSIGN(m_exports, find_exports(m_context.system, m_config, find_own_servers(m_context.system, m_config), true));
    TRY_ASSIGN(const auto executed, execute(m_context, [this] { return propose(); }));
    const auto& plan = m_mounts.plan;
    std::size_t good = plan.right.size() + plan.planned.size();
    std::size_t bad = plan.blocked.size();
    if (executed.applied()) {
      const auto& whole = *m_context.envelope.plan;
      report_busy(m_context, m_mounts.table, whole, *executed.report);
      good = executed.report->count_good();
      bad += executed.report->results.size() - good;
    }
    if (executed.stopped())
      return executed.exit_code;
    if (executed.applied() && executed.report->ok() && m_exports) {
      TRY_ASSIGN(const auto found, exports::verify(m_context.system, *m_exports, m_proposed, m_say));
      m_context.report(found);
      bad += has_errors(found) ? 1 : 0;
    }
    return exit_code_for(good, bad);
  }

 private:
  Result<Proposal> propose() {
    Proposal proposal{{}, "nothing of sharefs.yaml is up here: nothing to do"};
    auto& plan = proposal.plan;
    const auto staged = staged_images(m_context, &m_config);
    auto how = m_how;
    how.go_first = staged_binds(staged);
    TRY_ASSIGN(m_mounts, plan_unmount_work(m_context, mount_points(m_context.system, &m_config), how, Forget::all));
    m_context.report(m_mounts.plan.diagnoses);
    if (m_config.watch)
      plan = mounts::watch::plan_daemon(mounts::watch::probe_daemon(m_context.system), false);
    plan.add(plan_first_boot(m_mounts.boot, m_config, "", false));
    plan.add(m_mounts.plan.plan);
    conda::unmount_staged(staged, m_how.lazy, m_mounts.table, plan);
    plan_staged_unit(m_context, false, plan);
    if (!m_mounts.plan.blocked.empty())
      proposal.nothing = "nothing more can be taken back now";
    if (m_exports) {
      TRY(exports::propose(m_context.system, *m_exports, m_proposed, m_say));
      for (auto step : m_proposed.plan.steps) {
        step.group.clear(); // last, after what is bound from the exported directories
        plan.steps.push_back(std::move(step));
      }
      mounts::append(plan.notes, m_proposed.plan.notes);
      plan.unnamed_last = !m_proposed.plan.empty();
    }
    if (!plan.empty())
      plan.notes.push_back(left_as_it_is());
    return proposal;
  }

  /// Lists what is left because it holds data, or may be seen on other hosts.
  [[nodiscard]] std::string left_as_it_is() const {
    std::vector<std::string> left;
    if (m_exports && !m_proposed.actual.files.own.value_or("").empty())
      left.emplace_back("the directories that were exported, and the NFS server");
    if (m_config.conda)
      left.emplace_back("the links in homes (`sharefs conda unlink --all` removes them)");
    left.push_back(fmt::format("caches in {}", join(m_config.caches.local, ", ")));
    return "left as they are: " + join(left, "; ");
  }

  Context& m_context;
  const config::Config& m_config;
  plan::Say m_say;
  mounts::UnmountOptions m_how;
  std::optional<exports::Request> m_exports; ///< nullopt: sharefs exports nothing on this host
  exports::Proposed m_proposed;
  UnmountWork m_mounts;
};

Result<int> run_down(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  TRY(require_root(context, "only root can take a host down"));
  if (context.flags.root != "/")
    return change_image(context, *config, timeout, false);
  return TakeDown(context, *config, {arguments.flag("force"), arguments.flag("lazy"), timeout}).run();
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

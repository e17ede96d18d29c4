// sharefs up: makes everything that sharefs.yaml says about this host, as one plan. Each part does what its own command
// does.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/link.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/up/on_mounts.hpp"
#include "cli/commands/up/part.hpp"
#include "cli/execute.hpp"
#include "mounts/watch/daemon.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// One run on a running host.
class BringUp {
 public:
  BringUp(Context& context, const config::Config& config, HostPart part, std::chrono::milliseconds timeout)
      : m_context(context), m_config(config), m_part(std::move(part)), m_say(say_to(context)) {
    m_scope.timeout = timeout;
  }

  Result<int> run() {
    m_context.envelope.fields["host"] = to_json(m_part);
    m_context.console.message("this host: " + describe(m_part));
    TRY_ASSIGN(m_exports, find_exports(m_context.system, m_config, m_part.own, false));
    TRY_ASSIGN(const auto executed, execute(m_context, [this] { return propose(); }));
    TRY(after_exports(executed));
    if (executed.applied()) {
      const auto mounted = mounted_by(*m_context.envelope.plan, *executed.report);
      m_good.insert(mounted.begin(), mounted.end());
      m_context.report(mounts::diagnose_mounted(m_context.system, m_mounts->seen, mounted, m_scope.path_deadline()));
    }
    m_context.envelope.fields["mounts"] = mounts_json(*m_mounts, m_good, executed.applied());
    if (executed.stopped())
      return executed.exit_code;
    count_executed(executed);
    if (m_has_later_plan && executed.applied() && executed.exit_code != k_exit_failed)
      if (const auto further = execute_later_plan(); !further || *further != k_exit_ok)
        return further;
    if (executed.applied() || m_later_applied)
      TRY(check_shares_made(m_context, m_on, m_scope.path_deadline()));
    m_context.envelope.fields["homes"] =
        m_on.links ? homes_json(m_on.links->state, m_on.links->request) : Json::array();
    if (const auto staged = mount_on_shares(m_context, m_config, true); !staged || *staged != k_exit_ok)
      return staged;
    return exit_code();
  }

 private:
  Result<Proposal> propose() {
    Proposal proposal{{}, "all is as sharefs.yaml says: nothing to do"};
    auto& plan = proposal.plan;
    if (m_exports) {
      const auto result = exports::propose(m_context.system, *m_exports, m_proposed, m_say);
      m_context.envelope.fields["exports"] = to_json(m_proposed.composed.exports);
      TRY(result);
      plan = m_proposed.plan;
      for (auto& step : plan.steps)
        step.group.clear(); // first, because others are bound from them or mounted from them
      if (!plan.empty())
        proposal.before_groups = [this] { return check_exports(); };
    }
    TRY_ASSIGN(auto work, plan_mount_work(m_context, m_config, m_part.mounts, m_scope));
    m_context.report(work.plan.diagnoses);
    m_has_later_plan = !plan.empty() || !work.plan.planned.empty();
    plan.add(work.plan.plan);
    m_mounts = std::move(work);
    m_good = {m_mounts->plan.right.begin(), m_mounts->plan.right.end()};
    if (m_config.watch)
      plan.add(plan_watch());
    if (m_has_later_plan) {
      note_later(plan);
    } else {
      TRY(plan_shares_and_links());
      plan.add(m_on.plan);
    }
    if (m_on.failed + m_mounts->plan.blocked.size() > 0)
      proposal.nothing = "nothing more can be done now";
    return proposal;
  }

  plan::Plan plan_watch() {
    const auto daemon = mounts::watch::probe_daemon(m_context.system);
    if (!daemon.systemd)
      m_context.message_once(
          "watch: systemd does not run here; have `sharefs watch` started by what starts services on this host");
    else if (daemon.unit_file.empty())
      m_context.message_once(fmt::format("watch: there is no {} here, which comes with the package of sharefs",
                                         mounts::watch::k_watch_unit));
    return mounts::watch::plan_daemon(daemon, true);
  }

  /// Notes what is planned later: the store and directories on a share can be read only where it is mounted.
  void note_later(plan::Plan& plan) {
    std::vector<std::string> what;
    if (has_shares(m_config, m_part.mounts))
      what.emplace_back("the directories of `shares:`");
    if (m_config.conda && has_links(*m_config.conda))
      what.emplace_back("the links in the homes");
    if (!what.empty())
      plan.notes.push_back(fmt::format("{}: planned, shown and asked for once this is done", join(what, " and ")));
  }

  Result<void> plan_shares_and_links() {
    TRY_ASSIGN(m_on, plan_on_mounts(m_context, m_config, &m_part, *m_mounts, m_good, m_scope.path_deadline()));
    m_context.report(m_on.found);
    return {};
  }

  /// Runs between the steps of the exports and the other steps.
  Result<void> check_exports() {
    TRY_ASSIGN(m_verified, exports::verify(m_context.system, *m_exports, m_proposed, m_say));
    if (has_errors(*m_verified))
      return fail(ErrorCode::failed, "not begun: the exports are not as sharefs.yaml has them", "see the errors above");
    return {};
  }

  /// Verifies the exports; if they are not as wanted, the whole run is undone.
  Result<void> after_exports(const Executed& executed) {
    if (!m_exports)
      return {};
    if (!m_verified && m_proposed.plan.empty() && !m_context.flags.dry_run) {
      TRY_ASSIGN(m_verified, exports::verify(m_context.system, *m_exports, m_proposed, m_say));
    }
    return m_verified ? conclude_exports(m_context, executed, m_proposed, *m_verified) : Result<void>();
  }

  /// Executes what had to wait for the first plan, as a second plan. An exit code other than 0 ends the command.
  Result<int> execute_later_plan() {
    TRY_ASSIGN(const auto executed, execute_on_mounts(m_context, m_on, [this] { return plan_shares_and_links(); }));
    count_executed(executed);
    m_later_applied = executed.applied();
    return executed.stopped() ? executed.exit_code : k_exit_ok;
  }

  void count_executed(const Executed& executed) {
    if (executed.exit_code == k_exit_failed || executed.exit_code == k_exit_partly)
      ++m_failed;
    if (executed.exit_code == k_exit_partly || (executed.applied() && executed.exit_code == k_exit_ok))
      ++m_done;
  }

  /// Returns 4 if some parts of this host are as wanted and others are not.
  [[nodiscard]] int exit_code() const {
    const auto& plan = m_mounts->plan;
    const bool dry = m_context.flags.dry_run;
    std::size_t good = m_done + m_good.size() + (m_verified ? 1 : 0) + (dry ? plan.planned.size() : 0);
    std::size_t bad = m_failed + m_on.failed + plan.blocked.size();
    if (m_on.links && m_on.links->state.homes.size() > m_on.failed)
      ++good;
    return exit_code_for(good, bad);
  }

  Context& m_context;
  const config::Config& m_config;
  HostPart m_part;
  plan::Say m_say;
  MountScope m_scope;
  std::optional<exports::Request> m_exports; ///< nullopt: this host exports nothing
  exports::Proposed m_proposed;
  std::optional<Diagnoses> m_verified; ///< findings about the exports; nullopt: not verified
  std::optional<MountWork> m_mounts;
  std::set<std::string> m_good;  ///< targets that are mounted
  bool m_has_later_plan = false; ///< what is on mounts is planned after the first plan is done
  bool m_later_applied = false;
  OnMounts m_on;
  std::size_t m_done = 0, m_failed = 0; ///< executed plans
};

Result<int> run_up(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  if (context.flags.root != "/") {
    TRY(require_root(context, "only root can prepare an image"));
    return change_image(context, *config, timeout, true);
  }
  auto part = find_part(context.system, *config);
  TRY(check_named(context.system, *config, part));
  TRY(require_root(context, "only root can bring a host up"));
  return BringUp(context, *config, std::move(part), timeout).run();
}

} // namespace

extern const CommandSpec k_up_command{
    .name = "up",
    .summary = "Make this host what sharefs.yaml says: exports, mounts, links, caches",
    .description =
        "Works out what this host is, a server, a client or both, and makes one plan of all that belongs to it: its "
        "exports, which are verified before anything else is done; its mounts and what brings them back at boot; the "
        "directories of `caches.local`; the daemon, if there is a section `watch:`; then what lies on the mounts, "
        "directories of `shares:` and the links in the homes of this host. While something is still to be mounted, "
        "that last part is a second plan, behind the first. Running it again changes nothing. With --root it prepares "
        "the image of a node, and what needs a running machine is done at its first boot.",
    .example = "sharefs up                        # on each machine: shows the plan, and asks\n"
               "sharefs up --check                # exit code 3 if there is anything to do\n"
               "sharefs --root /srv/image up --yes",
    .changes = true,
    .options = {k_servers_timeout},
    .on_nodes = true,
    .run = run_up,
};

} // namespace sharefs::cli

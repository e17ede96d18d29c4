// sharefs nodes trust: writes host keys to known_hosts, and makes nodes accept logins of this user. Its plans have
// `nodes grant` as steps.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "cli/execute.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/grant.hpp"
#include "ui/table.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

using fleet::Grant;
using fleet::Outcome;
using fleet::Reached;
using fleet::State;

namespace {

/// Returns the path that an option gives, with `~` replaced by the home; "" without the option.
std::string given_path(Context& context, const Arguments& arguments, std::string_view option) {
  auto path = arguments.value(option).value_or("");
  if (path.empty())
    return path;
  return normalize_path(path.starts_with("~/") ? join_path(context.system.identity().home, path.substr(2)) : path,
                        context.host.working_directory);
}

/// Finds out how ssh reaches these nodes, and the key of `--key` that they shall accept. Uses the options of the fleet.
Result<fleet::Trust> begin_trust(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes) {
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  const auto run = [&](const std::vector<fleet::Node>& there, fleet::Request request, const std::string& what) {
    return all_answers(run_script(context, arguments, there, std::move(request), false, what));
  };
  fleet::Trust trust{.system = context.system, .directory = directory, .run = run};
  TRY(trust.begin(nodes, given_path(context, arguments, "key")));
  return trust;
}

/// One run of the command. Each step returns an exit code; one other than 0 ends the command.
class TrustNodes {
 public:
  TrustNodes(Context& context, const Arguments& arguments, fleet::Trust trust)
      : m_context(context), m_arguments(arguments), m_trust(std::move(trust)),
        m_ca(given_path(context, arguments, "ca")), m_user_ca(given_path(context, arguments, "user-ca")) {}

  Result<int> run() {
    for (const auto& authority : {m_ca, m_user_ca})
      if (!authority.empty())
        TRY(read_authority(authority));
    TRY(m_trust.try_login(m_trust.nodes));
    TRY_ASSIGN(int code, accept_host_keys());
    if (code == k_exit_ok) {
      TRY_ASSIGN(code, work_on_nodes());
    }
    if (code != k_exit_ok)
      return code;
    std::vector<Outcome> outcomes;
    for (const auto& one : m_trust.nodes)
      outcomes.push_back(m_trust.outcomes.at(one.node.name));
    show_outcomes(m_context, outcomes);
    code = fleet::exit_code_of(outcomes);
    const bool is_planned = m_context.envelope.plan && !m_context.envelope.plan->empty();
    if (m_context.flags.dry_run && code == k_exit_pending)
      return k_exit_ok;
    return m_context.flags.check && code == k_exit_ok && is_planned ? k_exit_pending : code;
  }

 private:
  Result<std::string> read_authority(const std::string& key) {
    return fleet::read_public_key(m_context.system, key, "an authority; keep it on one machine");
  }

  void show_keys(const std::vector<Reached>& nodes) {
    ui::Table table({{"NODE"}, {"TYPE"}, {"FINGERPRINT"}});
    auto list = Json::array();
    for (const auto& reached : nodes)
      for (const auto& key : reached.keys) {
        table.add({{reached.node.name}, {key.type}, {key.fingerprint}});
        list.push_back({{"node", reached.node.name}, {"type", key.type}, {"fingerprint", key.fingerprint}});
      }
    m_context.show(table, "host_keys", std::move(list));
  }

  /// Shows the keys of nodes that ssh does not know, and writes them to known_hosts if the user accepts them, together
  /// with a line for the authority.
  Result<int> accept_host_keys() {
    TRY_ASSIGN(const auto authority, m_ca.empty() ? Result<std::string>("") : read_authority(m_ca));
    TRY_ASSIGN(auto unknown, fleet::find_host_keys(m_trust));
    if (!unknown.empty())
      show_keys(unknown);
    const fleet::Acceptance acceptance{m_arguments.flag("accept"), given_path(m_context, m_arguments, "fingerprint")};
    TRY_ASSIGN(const auto accepted, fleet::accept_keys(m_trust, std::move(unknown), acceptance));
    const auto propose = [&]() -> Result<Proposal> {
      TRY_ASSIGN(auto plan, fleet::plan_known_hosts(m_trust, accepted, authority, m_arguments.flag("system")));
      return Proposal{std::move(plan), ""};
    };
    TRY_ASSIGN(const auto executed, execute(m_context, propose));
    if (m_context.flags.changes_nothing())
      return k_exit_ok;
    if (executed.applied() && executed.exit_code == k_exit_ok)
      TRY(m_trust.try_login(accepted));
    return executed.exit_code;
  }

  /// Changes the nodes themselves, once known_hosts is right.
  Result<int> work_on_nodes() {
    constexpr std::chrono::minutes k_longest{10};
    const bool is_mesh = m_arguments.flag("mesh");
    std::unique_ptr<LeaseOnServers> lease; // not taken for the user's own key, which concerns nobody else
    if ((!m_ca.empty() || !m_user_ca.empty() || is_mesh) && !m_context.flags.changes_nothing()) {
      TRY_ASSIGN(lease, LeaseOnServers::take(m_context, "trust-" + random_letters(8), k_longest));
    }
    int code = k_exit_ok;
    if (!m_trust.key.empty()) {
      TRY_ASSIGN(code, m_user_ca.empty() ? bring_key() : certify_user());
    }
    m_trust.explain_denied();
    if (code == k_exit_ok && !m_ca.empty()) {
      const fleet::Granting hosts{.grant = Grant::hosts, .ca = m_ca};
      TRY_ASSIGN(code, grant(m_trust.nodes_with_login(), hosts, "one line of known_hosts stands for them all"));
    }
    if (code == k_exit_ok && is_mesh) {
      const fleet::Granting mesh{.grant = Grant::mesh, .mesh = m_trust.nodes_with_login()};
      TRY_ASSIGN(code, grant(m_trust.nodes_with_login(), mesh, "they know one another"));
      if (code == k_exit_ok && !m_context.flags.changes_nothing())
        TRY(m_trust.try_mesh());
    }
    return code;
  }

  /// Brings the user's key to the nodes that deny a login with it.
  Result<int> bring_key() {
    auto denied = m_trust.in(State::denied);
    std::erase_if(denied, [&](const Reached& reached) { return reached.key != m_trust.key; });
    if (denied.empty())
      return k_exit_ok;
    const fleet::Granting key{.grant = Grant::key, .password = given_path(m_context, m_arguments, "password-file")};
    TRY_ASSIGN(const int code, grant(denied, key, "they let " + denied.front().ssh.user + " in with it"));
    if (code == k_exit_ok) // the change may have been made with another key
      TRY(m_trust.try_login(m_trust.in(State::changed), "the key is there now"));
    return code;
  }

  /// Makes the nodes accept user certificates of the authority, and makes one for this user.
  Result<int> certify_user() {
    TRY_ASSIGN(const auto plan, fleet::plan_certificate(m_trust, m_user_ca, m_arguments.value("valid").value_or("1d")));
    if (!plan.empty()) {
      TRY_ASSIGN(const auto executed, execute_more(plan));
      if (executed.exit_code != k_exit_ok && !m_context.flags.check)
        return executed.exit_code;
    }
    const auto denied = m_trust.in(State::denied);
    auto nodes = m_trust.nodes_with_login();
    nodes.insert(nodes.end(), denied.begin(), denied.end());
    const fleet::Granting users{
        .grant = Grant::users, .ca = m_user_ca, .password = given_path(m_context, m_arguments, "password-file")};
    TRY_ASSIGN(const int code, grant(nodes, users, "sshd there accepts its certificates"));
    if (code == k_exit_ok && !m_context.flags.changes_nothing())
      TRY(m_trust.try_login(denied, "a certificate lets this user in now"));
    return code;
  }

  Result<Executed> execute_more(const plan::Plan& plan) {
    return execute_further(m_context, [&]() -> Result<Proposal> { return Proposal{plan, ""}; });
  }

  /// Grants it to the nodes that lack it, after the user's consent.
  Result<int> grant(const std::vector<Reached>& nodes, fleet::Granting granting, const std::string& why) {
    if (nodes.empty())
      return k_exit_ok;
    granting.mark = random_letters(8);
    TRY_ASSIGN(const auto checked, fleet::grant_on_nodes(m_trust, nodes, granting, fleet::GrantWork::check));
    for (const auto& outcome : checked)
      if (outcome.state == State::ok && granting.grant == Grant::key)
        m_trust.note(
            {{.node = outcome.node,
              .state = State::failed,
              .why = "the key is in ~/.ssh/authorized_keys there, and sshd does not take it",
              .hint = "`journalctl -u ssh` there says why; home and ~/.ssh must be writable by their user alone"}});
      else if (outcome.state != State::ok)
        m_trust.note({outcome});
    const auto lacking = fleet::nodes_in_state(State::pending, nodes, checked);
    if (lacking.empty())
      return k_exit_ok;
    auto options = with_config(m_context, {}); // for the process of `nodes grant`
    if (const auto engine = m_arguments.value("engine"))
      options.insert(options.end(), {"--engine", *engine});
    plan::Plan plan;
    plan.add("", why, fleet::grant_step(m_trust, lacking, granting, options));
    TRY_ASSIGN(const auto executed, execute_more(plan));
    if (!executed.applied())
      return m_context.flags.check ? k_exit_ok : executed.exit_code;
    if (executed.report->interrupted)
      return k_exit_interrupted;
    const auto done = fleet::take_record(m_trust, granting.mark);
    if (!done && executed.exit_code != k_exit_ok) // the step has reported the reason
      return executed.exit_code;
    TRY(done);
    m_trust.note(*done);
    return k_exit_ok;
  }

  Context& m_context;
  const Arguments& m_arguments;
  fleet::Trust m_trust;
  std::string m_ca, m_user_ca; ///< files of the authorities' private keys; empty: none
};

Result<int> run_nodes_trust(Context& context, const Arguments& arguments) {
  if (arguments.flag("accept") && arguments.value("fingerprint"))
    return fail(ErrorCode::usage, "--accept and --fingerprint exclude each other", "leave one of the two out");
  const auto pattern = named_nodes(arguments);
  TRY_ASSIGN(const auto nodes, arguments.flag("mesh") ? chosen_nodes(context, pattern) : other_nodes(context, pattern));
  TRY(arguments.duration("valid"));
  if (nodes.empty()) {
    context.console.message("this machine is the only one of these nodes: it trusts itself");
    return k_exit_ok;
  }
  TRY_ASSIGN(const auto lock, lock_fleet(context));
  TRY_ASSIGN(auto trust, begin_trust(context, arguments, nodes));
  return TrustNodes(context, arguments, std::move(trust)).run();
}

/// Gives nodes one thing that ssh needs there, or removes it: a step of the plan of `nodes trust`, so that `undo` can
/// remove it.
Result<int> run_nodes_grant(Context& context, const Arguments& arguments) {
  const auto grant = fleet::grant_from(arguments.positional.at(0));
  const auto mark = arguments.value("mark").value_or("");
  if (!grant)
    return fail(ErrorCode::usage, fmt::format("`nodes grant` does not know `{}`", arguments.positional.at(0)),
                "one of key, hosts, users, mesh");
  if (!are_random_letters(mark))
    return fail(ErrorCode::usage, "option `--mark` needs letters and digits; they mark the lines that are added");
  TRY_ASSIGN(const auto known, known_nodes(context));
  TRY_ASSIGN(const auto nodes, chosen_of(known, arguments.positional.at(1)));
  TRY_ASSIGN(const auto trust, begin_trust(context, arguments, nodes));
  fleet::Granting granting{.grant = *grant,
                           .ca = given_path(context, arguments, "ca"),
                           .mark = mark,
                           .password = given_path(context, arguments, "password-file")};
  if (const auto of = arguments.value("of")) {
    TRY_ASSIGN(const auto all, chosen_of(known, *of));
    TRY_ASSIGN(granting.mesh, fleet::read_ssh_settings(context.system, all));
  }
  TRY_ASSIGN(const auto outcomes,
             fleet::grant_on_nodes(trust, trust.nodes, granting,
                                   arguments.flag("remove") ? fleet::GrantWork::remove : fleet::GrantWork::add));
  show_outcomes(context, outcomes);
  if (const auto name = arguments.value("record")) {
    TRY_ASSIGN(const auto made,
               plan::PrivateDirectory::make(context.system.files(), fleet::record_of_grant(trust, *name)));
    TRY(fleet::write_outcomes(made, outcomes));
    return k_exit_ok; // the process that reads the record reports failures
  }
  return fleet::exit_code_of(outcomes);
}

} // namespace

extern const CommandSpec k_nodes_trust_command{
    .name = "nodes trust",
    .summary = "Let ssh know the nodes, and the nodes this user's key",
    .description =
        "Tries to log in to each node. Of nodes that ssh does not know it shows the fingerprints of their host keys, "
        "and writes them into known_hosts only with --accept, or with --fingerprint where they are those of a list "
        "that was read on the nodes' consoles. A host key that has changed is refused. Then this user's public key "
        "comes to nodes that do not let it in, where another key, an agent or a password does. Authorities are the "
        "better way: --ca certifies the hosts, and one line stands for them all; with --user-ca the nodes believe "
        "certificates of users, of which this user gets one for a day. `sharefs undo` takes it back, step by step.",
    .example = "sharefs nodes trust                              # shows the fingerprints\n"
               "sharefs nodes trust --fingerprint consoles.txt   # accepts those that are listed\n"
               "sharefs nodes trust --accept --ca /root/host_ca --user-ca /root/user_ca",
    .changes = true,
    .positional = {.name = "NODES", .help = "names, ranges and groups (@a100, clients); without them all", .max = 1},
    .options = with_fleet_options(
        {{.names = "--accept", .help = "accept the host keys that are shown"},
         {.names = "--fingerprint",
          .value = "FILE",
          .help = "accept those whose fingerprints FILE lists with the node"},
         {.names = "--system", .help = "write /etc/ssh/ssh_known_hosts, for all users of this machine"},
         {.names = "--key", .value = "FILE", .help = "the key that nodes shall let in, instead of ssh's first"},
         {.names = "--password-file", .value = "FILE", .help = "a file of this user alone with the password for nodes"},
         {.names = "--ca", .value = "KEY", .help = "certify the host keys by this authority's private key"},
         {.names = "--user-ca", .value = "KEY", .help = "certify this user's key, in place of authorized_keys"},
         {.names = "--valid", .value = "TIME", .help = "how long that certificate is valid", .fallback = "1d"},
         {.names = "--mesh", .help = "all nodes know each other, too: for launchers that go from node to node"}}),
    .run = run_nodes_trust,
};

extern const CommandSpec k_nodes_grant_command{
    .name = "nodes grant",
    .summary = "Bring one thing to nodes that ssh needs there, as `nodes trust` does it, or take it away",
    .description =
        "`key`: this user's public key in authorized_keys; `hosts`: certificates of the host keys by the authority "
        "--ca; `users`: user certificates of the authority --ca are believed; `mesh`: the host keys of all nodes in "
        "/etc/ssh/ssh_known_hosts. --remove takes away the lines that were added with this mark, and no others.",
    .example = "sharefs nodes grant key gpu07 --mark k3x9              # as a step of `sharefs nodes trust`\n"
               "sharefs nodes grant key gpu07 --mark k3x9 --remove     # as `sharefs undo` takes it back",
    .positional = {.name = "WHAT NODES", .help = "key, hosts, users or mesh, and where", .min = 2, .max = 2},
    .options = with_fleet_options(
        {{.names = "--mark", .value = "TEXT", .help = "stands at the end of each line that is added"},
         {.names = "--remove", .help = "take it away"},
         {.names = "--key", .value = "FILE", .help = "the user's key, instead of ssh's first"},
         {.names = "--ca", .value = "KEY", .help = "the private key of the authority"},
         {.names = "--of", .value = "NODES", .help = "the nodes whose host keys the others shall know"},
         {.names = "--password-file", .value = "FILE", .help = "a file of this user alone with the password for nodes"},
         {.names = "--record", .value = "NAME", .help = "leave the answers for `nodes trust`"}}),
    .run = run_nodes_grant,
};

} // namespace sharefs::cli

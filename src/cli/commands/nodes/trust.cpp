// sharefs nodes trust: host keys into known_hosts, and what lets this user in at the nodes.
#include "cli/commands/nodes/trust.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_lease.hpp"
#include "cli/fleet_view.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

using fleet::Grant;
using fleet::GrantWork;
using fleet::Outcome;
using fleet::Reached;
using fleet::State;

namespace {

constexpr std::chrono::minutes k_longest_grant{30};

/// The step of a plan by which nodes get it, and its way back.
plan::RunTool grant_step(Context& context, const Arguments& arguments, const Trust& trust,
                         const std::vector<Reached>& nodes, const Granting& granting) {
  plan::RunTool tool;
  tool.argv = {context.system.entry({.path = "/proc/self/exe"}).link_target,
               "nodes",
               "grant",
               to_string(granting.grant),
               folded(nodes),
               "--mark",
               granting.mark};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty())
      tool.argv.insert(tool.argv.end(), {option, value});
  };
  add("--config", context.flags.config.empty() ? "" : context.config_path());
  add("--engine", arguments.value("engine").value_or(""));
  if (granting.grant == Grant::key)
    add("--key", trust.key);
  tool.undo = tool.argv;
  tool.undo.emplace_back("--remove");
  add("--ca", granting.ca);
  add("--of", folded(granting.mesh));
  add("--password-file", granting.password ? given_path(context, *granting.password) : "");
  add("--record", granting.mark);
  tool.deadline = k_longest_grant;
  return tool;
}

/// The answers of the process that the step was, which are not needed any more then.
Result<std::vector<Outcome>> take_record(Context& context, const Granting& granting) {
  const auto directory = record_of_grant(context, granting.mark);
  const auto outcomes = directory ? fleet::read_outcomes(context.system, *directory) : fail(directory.error());
  if (!outcomes)
    return fail(outcomes.error());
  if (const auto above = plan::PrivateDirectory::open(context.system.files(), parent_path(*directory)); above && *above)
    (void)(*above)->remove(base_name(*directory));
  std::vector<Outcome> found;
  for (const auto& [name, outcome] : *outcomes)
    found.push_back(outcome);
  return found;
}

/// Those of the nodes that lack it get it, once a person has agreed. A number: the command ends with it.
Result<std::optional<int>> grant(Context& context, const Arguments& arguments, Trust& trust,
                                 const std::vector<Reached>& nodes, Granting granting, const std::string& why) {
  if (nodes.empty())
    return std::nullopt;
  granting.mark = random_letters(8);
  auto looked = grant_on_nodes(context, arguments, trust, nodes, granting, GrantWork::look);
  if (!looked)
    return fail(looked.error());
  std::vector<Outcome> lacking;
  for (const auto& outcome : *looked)
    if (outcome.state == State::pending)
      lacking.push_back(outcome);
    else if (outcome.state != State::ok)
      trust.note({outcome});
    else if (granting.grant == Grant::key)
      trust.note(
          {{.node = outcome.node,
            .state = State::failed,
            .why = "the key is in ~/.ssh/authorized_keys there, and sshd does not take it",
            .hint = "`journalctl -u ssh` there says why; home and ~/.ssh must be writable by their user alone"}});
  if (lacking.empty())
    return std::nullopt;
  plan::Plan plan;
  plan.add("", why, grant_step(context, arguments, trust, those_of(nodes, lacking), granting));
  const auto executed = execute_further(context, [&]() -> Result<Proposal> { return Proposal{plan, ""}; });
  if (!executed)
    return fail(executed.error());
  if (!executed->applied()) {
    trust.note(lacking);
    return executed->exit_code == k_exit_ok || context.flags.check ? std::optional<int>()
                                                                   : std::optional(executed->exit_code);
  }
  if (executed->report->interrupted)
    return k_exit_interrupted;
  const auto done = take_record(context, granting);
  if (!done && executed->exit_code != k_exit_ok) // the step has said why
    return executed->exit_code;
  if (!done)
    return fail(done.error());
  trust.note(*done);
  return std::nullopt;
}

/// What a node says that lets nobody in by a key.
void explain_denial(Trust& trust) {
  for (const auto& reached : trust.in(State::denied)) {
    auto& outcome = trust.outcomes.at(reached.node.name);
    if (trust.key.empty()) {
      outcome.why = "ssh does not let this user in, who has no key";
      outcome.hint = "`ssh-keygen -t ed25519` makes one; then `sharefs nodes trust NODE`";
    } else {
      outcome.hint = fmt::format("a password is needed once: `--password-file FILE`; or add this line to "
                                 "~/.ssh/authorized_keys there: {}",
                                 trust.public_key);
    }
  }
}

/// After a change by which this user is let in: by the one key, since another one may have let us in for the change.
Result<void> try_again(Context& context, const Arguments& arguments, Trust& trust, const std::vector<Reached>& nodes,
                       const std::string& what) {
  if (nodes.empty())
    return {};
  auto tried = try_login(context, arguments, trust, nodes);
  if (!tried)
    return fail(tried.error());
  for (auto& outcome : *tried)
    if (outcome.state == State::ok) {
      outcome.state = State::changed;
      outcome.why = what;
    }
  trust.note(*tried);
  return {};
}

/// The user's key comes to nodes that do not let him in with it.
Result<std::optional<int>> bring_key(Context& context, const Arguments& arguments, Trust& trust) {
  const auto denied = trust.in(State::denied);
  if (trust.key.empty() || denied.empty())
    return std::nullopt;
  auto ended = grant(context, arguments, trust, denied,
                     {.grant = Grant::key, .ca = {}, .password = arguments.value("password-file")},
                     "they let " + denied.front().ssh.user + " in with it");
  if (!ended || *ended)
    return ended;
  std::vector<Reached> changed;
  std::ranges::copy_if(denied, std::back_inserter(changed), [&](const Reached& reached) {
    return trust.outcomes.at(reached.node.name).state == State::changed;
  });
  const auto tried = try_again(context, arguments, trust, changed, "the key is there now");
  return tried ? ended : fail(tried.error());
}

/// Nodes believe user certificates of the authority, and this user has one.
Result<std::optional<int>> certify_user(Context& context, const Arguments& arguments, Trust& trust,
                                        const std::string& ca) {
  if (trust.key.empty())
    return std::nullopt;
  const auto plan = plan_certificate(context, arguments, trust, ca);
  if (!plan)
    return fail(plan.error());
  const auto executed = plan->empty()
                            ? Result<Executed>(Executed{})
                            : execute_further(context, [&]() -> Result<Proposal> { return Proposal{*plan, ""}; });
  if (!executed)
    return fail(executed.error());
  if (executed->exit_code != k_exit_ok && !context.flags.check)
    return executed->exit_code;
  const auto denied = trust.in(State::denied);
  auto nodes = trust.open();
  nodes.insert(nodes.end(), denied.begin(), denied.end());
  auto ended = grant(context, arguments, trust, nodes,
                     {.grant = Grant::users, .ca = ca, .password = arguments.value("password-file")},
                     "sshd there believes its certificates");
  if (!ended || *ended || context.flags.check || context.flags.dry_run)
    return ended;
  const auto tried = try_again(context, arguments, trust, denied, "a certificate lets this user in now");
  return tried ? ended : fail(tried.error());
}

/// From each to the next one: that all pairs can would take as many logins as there are pairs.
Result<void> try_mesh(Context& context, const Arguments& arguments, Trust& trust) {
  const auto ring = trust.open();
  fleet::Request step;
  step.asking.script = fleet::next_node_script();
  for (std::size_t i = 0; i < ring.size(); ++i)
    step.inputs[ring[i].node.name] = ring[(i + 1) % ring.size()].node.name + "\n";
  const auto stepped = run_there(context, arguments, trust, ring, step, "going from node to node");
  if (!stepped)
    return fail(stepped.error());
  for (auto outcome : *stepped)
    if (outcome.state != State::ok) {
      outcome.hint = "the user needs a key there, as with a home on the share, or hostbased authentication";
      trust.note({outcome});
    }
  return {};
}

/// What the nodes themselves need, once known_hosts is as it should be.
Result<std::optional<int>> work_on_nodes(Context& context, const Arguments& arguments, Trust& trust,
                                         const std::string& ca, const std::string& user_ca) {
  constexpr std::chrono::minutes k_longest{10};
  const bool is_mesh = arguments.flag("mesh");
  const bool is_look = context.flags.check || context.flags.dry_run;
  std::optional<LeaseOnServers> lease; // a user's own key is nobody else's business
  if ((!ca.empty() || !user_ca.empty() || is_mesh) && !is_look) {
    auto taken = LeaseOnServers::take(context, "trust-" + random_letters(8), k_longest);
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
  }
  auto ended =
      user_ca.empty() ? bring_key(context, arguments, trust) : certify_user(context, arguments, trust, user_ca);
  explain_denial(trust);
  if (ended && !*ended && !ca.empty())
    ended = grant(context, arguments, trust, trust.open(), {.grant = Grant::hosts, .ca = ca},
                  "one line of known_hosts stands for them all");
  if (!ended || *ended || !is_mesh)
    return ended;
  ended = grant(context, arguments, trust, trust.open(), {.grant = Grant::mesh, .ca = {}, .mesh = trust.open()},
                "they know one another");
  if (!ended || *ended || is_look)
    return ended;
  const auto tried = try_mesh(context, arguments, trust);
  return tried ? ended : fail(tried.error());
}

Result<int> run_nodes_trust(Context& context, const Arguments& arguments) {
  if (arguments.flag("accept") && arguments.value("fingerprint"))
    return fail(ErrorCode::usage, "--accept and --fingerprint exclude each other", "leave one of the two out");
  const auto pattern = named_nodes(arguments);
  const auto nodes = arguments.flag("mesh") ? chosen_nodes(context, pattern) : other_nodes(context, pattern);
  if (!nodes)
    return fail(nodes.error());
  if (nodes->empty()) {
    context.console.message("this machine is the only one of these nodes: it trusts itself");
    return k_exit_ok;
  }
  const auto lock = lock_fleet(context);
  auto trust = lock ? begin_trust(context, arguments, *nodes) : fail(lock.error());
  if (!trust)
    return fail(trust.error());
  const auto ca = given_path(context, arguments.value("ca").value_or(""));
  const auto user_ca = given_path(context, arguments.value("user-ca").value_or(""));
  for (const auto& authority : {ca, user_ca})
    if (!authority.empty())
      if (const auto key = public_key_of(context, authority, "an authority; keep it on one machine"); !key)
        return fail(key.error());
  const auto tried = try_login(context, arguments, *trust, trust->nodes);
  if (!tried)
    return fail(tried.error());
  trust->note(*tried);
  auto ended = accept_host_keys(context, arguments, *trust, ca);
  if (ended && !*ended)
    ended = work_on_nodes(context, arguments, *trust, ca, user_ca);
  if (!ended || *ended)
    return ended ? Result<int>(**ended) : fail(ended.error());
  std::vector<Outcome> outcomes;
  for (const auto& one : trust->nodes)
    outcomes.push_back(trust->outcomes.at(one.node.name));
  show_outcomes(context, outcomes);
  const int code = fleet::exit_code_of(outcomes);
  const bool is_planned = context.envelope.plan && !context.envelope.plan->empty();
  if (context.flags.dry_run && code == k_exit_pending)
    return k_exit_ok;
  return context.flags.check && code == k_exit_ok && is_planned ? k_exit_pending : code;
}

} // namespace

std::vector<Reached> Trust::in(State state) const {
  std::vector<Reached> found;
  for (const auto& reached : nodes)
    if (const auto outcome = outcomes.find(reached.node.name);
        outcome != outcomes.end() && outcome->second.state == state)
      found.push_back(reached);
  return found;
}

std::vector<Reached> Trust::open() const {
  auto found = in(State::ok);
  const auto fresh = in(State::changed);
  found.insert(found.end(), fresh.begin(), fresh.end());
  return found;
}

void Trust::note(const std::vector<Outcome>& newer) {
  for (const auto& outcome : newer)
    outcomes.insert_or_assign(outcome.node, outcome);
}

std::string folded(const std::vector<Reached>& nodes) {
  std::vector<std::string> names;
  for (const auto& reached : nodes)
    names.push_back(reached.node.name);
  return fleet::fold(names);
}

std::vector<Reached> those_of(const std::vector<Reached>& nodes, const std::vector<Outcome>& outcomes) {
  std::vector<Reached> found;
  for (const auto& reached : nodes)
    if (std::ranges::find(outcomes, reached.node.name, &Outcome::node) != outcomes.end())
      found.push_back(reached);
  return found;
}

Result<Trust> begin_trust(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes) {
  Trust trust;
  for (const auto& node : nodes) {
    Argv argv{"ssh", "-G"};
    if (!node.address.empty())
      argv.insert(argv.end(), {"-o", "HostName=" + node.address});
    if (!node.user.empty())
      argv.insert(argv.end(), {"-l", node.user});
    argv.insert(argv.end(), {"--", node.name});
    const auto said = output_of(context, argv);
    if (!said)
      return fail(said.error());
    trust.nodes.push_back({node, fleet::parse_ssh_settings(*said), {}});
  }
  auto files = trust.nodes.empty() ? std::vector<std::string>{} : trust.nodes.front().ssh.identity_files;
  const auto given = arguments.value("key");
  if (given)
    files = {given->ends_with(".pub") ? given->substr(0, given->size() - 4) : *given};
  for (const auto& file : files) {
    const auto path = given_path(context, file);
    const auto text = context.system.files().read_if_exists(path + ".pub");
    if (!text)
      return fail(text.error());
    if (text->value_or("").empty())
      continue;
    trust.key = path;
    trust.public_key = trim(**text);
    break;
  }
  if (given && trust.key.empty())
    if (const auto key = public_key_of(context, given_path(context, files.front()), "a key"); !key)
      return fail(key.error());
  return trust;
}

std::string given_path(Context& context, const std::string& path) {
  if (path.empty())
    return path;
  return normalize_path(path.starts_with("~/") ? join_path(context.system.identity().home, path.substr(2)) : path,
                        context.host.working_directory);
}

Result<std::string> public_key_of(Context& context, const std::string& key, const std::string& what) {
  const auto text = context.system.files().read_if_exists(key + ".pub");
  if (text && text->value_or("").empty())
    return fail(ErrorCode::not_found, fmt::format("there is no public key {}.pub", key),
                fmt::format("`ssh-keygen -t ed25519 -f {}` makes {}", shell_quote(key), what));
  return text ? Result<std::string>(std::string(trim(**text))) : fail(text.error());
}

Result<std::string> fingerprint_of(Context& context, const std::string& file) {
  const auto printed = output_of(context, {"ssh-keygen", "-l", "-f", file});
  const auto words = printed ? split_words(*printed) : std::vector<std::string>{};
  if (printed && words.size() < 2)
    return fail(ErrorCode::failed, fmt::format("{}: `ssh-keygen -l` gives no fingerprint", file));
  return printed ? Result<std::string>(words[1]) : fail(printed.error());
}

Result<std::string> output_of(Context& context, const Argv& argv, const std::string& input) {
  sys::Command command;
  command.argv = argv;
  command.input = input;
  command.deadline = std::chrono::seconds(60);
  const auto completed = context.system.run(command);
  if (!completed)
    return fail(completed.error());
  if (!completed->ok())
    return fail(ErrorCode::failed, fmt::format("`{}` failed: {}", shell_join(argv), trim(completed->err)));
  return completed->out;
}

Result<std::vector<Outcome>> run_there(Context& context, const Arguments& arguments, const Trust& trust,
                                       const std::vector<Reached>& nodes, fleet::Request request,
                                       const std::string& what) {
  request.asking.always_by_ssh = true;
  if (request.asking.ssh.size() == 1)
    request.asking.ssh = {"ssh", "-o", "StrictHostKeyChecking=yes"};
  if (request.ssh_config.empty())
    request.ssh_config = fleet::ssh_config_with_key(nodes, trust.key);
  if (!request.read)
    request.read = fleet::script_outcome;
  std::vector<fleet::Node> plain;
  for (const auto& reached : nodes)
    plain.push_back(reached.node);
  return all_answers(run_script(context, arguments, plain, std::move(request), false, what));
}

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
    .effect = Effect::changes,
    .positional = {.name = "NODES", .help = "names, ranges and groups (@a100, clients); without them all", .max = 1},
    .options = with_fleet_options(
        {{.names = "--accept", .help = "believe the host keys that are shown"},
         {.names = "--fingerprint",
          .value = "FILE",
          .help = "believe those whose fingerprints FILE lists with the node"},
         {.names = "--system", .help = "write /etc/ssh/ssh_known_hosts, for all users of this machine"},
         {.names = "--key", .value = "FILE", .help = "the key that nodes shall let in, instead of ssh's first"},
         {.names = "--password-file", .value = "FILE", .help = "a file of this user alone with the password for nodes"},
         {.names = "--ca", .value = "KEY", .help = "certify the host keys by this authority's private key"},
         {.names = "--user-ca", .value = "KEY", .help = "certify this user's key, in place of authorized_keys"},
         {.names = "--valid", .value = "TIME", .help = "of that certificate", .fallback = "1d"},
         {.names = "--mesh", .help = "all nodes know each other, too: for launchers that go from node to node"}}),
    .run = run_nodes_trust,
};

} // namespace sharefs::cli

// sharefs nodes trust: host keys into known_hosts, the user's key to the nodes.
#include "cli/commands/nodes/trust.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_lease.hpp"
#include "cli/fleet_view.hpp"
#include "fleet/trust.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using fleet::Outcome;
using fleet::Reached;
using fleet::State;

constexpr const char* k_changed = "changed"; ///< in the document of a node whose host key is another one than before
/// A slow node is not to be taken for one that is off: what is not reached now stays without trust.
constexpr std::chrono::seconds k_first_contact{15};
constexpr const char* k_system_known_hosts = "/etc/ssh/ssh_known_hosts";

bool has_changed(const Outcome& outcome) {
  return outcome.document.is_object() && outcome.document.contains(k_changed);
}

Outcome changed_key(const fleet::Node& node) {
  return {.node = node.name,
          .state = State::host_key,
          .why = "its host key is another one than before: somebody else may answer in its place",
          .hint =
              "if it was installed anew, forget its old key (`ssh-keygen -R NODE`), then `sharefs nodes trust NODE`",
          .document = {{k_changed, true}}};
}

/// How ssh reaches each node.
Result<std::vector<Reached>> ask_settings(Context& context, const std::vector<fleet::Node>& nodes) {
  std::vector<Reached> reached;
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
    reached.push_back({node, fleet::parse_ssh_settings(*said), {}});
  }
  return reached;
}

/// The key that nodes shall let in: `--key`, or the first of ssh's that is there.
Result<void> choose_key(Context& context, const Arguments& arguments, Trust& trust) {
  auto files = trust.nodes.front().ssh.identity_files;
  if (auto given = arguments.value("key")) {
    if (given->ends_with(".pub"))
      given->resize(given->size() - 4);
    files = {normalize_path(expand_home(context, *given), context.host.working_directory)};
  }
  for (const auto& file : files) {
    const auto path = expand_home(context, file);
    const auto text = file_text(context, path + ".pub");
    if (!text)
      return fail(text.error());
    if (text->empty())
      continue;
    trust.key = path;
    trust.public_key = trim(*text);
    return {};
  }
  if (arguments.value("key"))
    return fail(ErrorCode::not_found, fmt::format("there is no public key {}.pub", files.front()),
                fmt::format("`ssh-keygen -t ed25519 -f {}` makes a key", shell_quote(files.front())));
  return {};
}

/// Whether ssh's files of known hosts name another key of the node: ssh itself says only that it does not know the one
/// that is offered, where it is of another type.
Result<bool> is_known_otherwise(Context& context, const Reached& reached) {
  return known_host_lines(context, reached).map([](const std::vector<std::string>& lines) {
    return std::ranges::any_of(lines, [](const auto& line) { return !line.starts_with("@cert-authority"); });
  });
}

/// The keys that they offer. ssh-keyscan ends with 0 although hosts are missing: who is not in its output did not
/// answer.
Result<void> scan(Context& context, std::vector<Reached>& nodes) {
  std::map<std::string, std::vector<Reached*>> by_port;
  for (auto& reached : nodes)
    if (reached.ssh.proxy_jump.empty() && reached.ssh.proxy_command.empty())
      by_port[reached.ssh.port].push_back(&reached);
  for (const auto& [port, members] : by_port) {
    sys::Command command;
    command.argv = {"ssh-keyscan", "-T", std::to_string(k_first_contact.count()), "-p", port, "-f", "-"};
    for (const auto* reached : members)
      command.input += reached->ssh.host + "\n";
    command.deadline = std::chrono::seconds(60) + std::chrono::milliseconds(200) * members.size();
    command.ends_with_us = true;
    const auto completed = context.system.run(command);
    if (!completed)
      return fail(completed.error());
    const auto found = fleet::parse_keyscan(completed->out);
    for (auto* reached : members)
      if (const auto keys = found.find(reached->ssh.with_port(reached->ssh.host)); keys != found.end())
        reached->keys = keys->second;
  }
  const auto lines = fleet::known_hosts_lines(nodes);
  if (lines.empty())
    return {};
  const auto printed = output_of(context, {"ssh-keygen", "-l", "-f", "-"}, lines);
  return printed ? fleet::read_fingerprints(*printed, nodes) : fail(printed.error());
}

void show_keys(Context& context, const std::vector<Reached>& nodes) {
  ui::Table table({{"NODE"}, {"TYPE"}, {"FINGERPRINT"}});
  auto list = nlohmann::ordered_json::array();
  for (const auto& reached : nodes)
    for (const auto& key : reached.keys) {
      table.add({{reached.node.name}, {key.type}, {key.fingerprint}});
      list.push_back({{"node", reached.node.name}, {"type", key.type}, {"fingerprint", key.fingerprint}});
    }
  context.envelope.fields["host_keys"] = std::move(list);
  context.console.show(table);
}

/// What speaks against the keys of a node, or `pending`; only accepted keys are left in it.
Outcome judge(const Arguments& arguments, const std::map<std::string, std::set<std::string>>& listed,
              Reached& reached) {
  Outcome outcome{.node = reached.node.name, .state = State::host_key};
  const auto file = arguments.value("fingerprint");
  if (reached.keys.empty()) {
    const bool is_behind = !reached.ssh.proxy_jump.empty() || !reached.ssh.proxy_command.empty();
    outcome.state = is_behind ? State::host_key : State::unreachable;
    outcome.why = is_behind ? "it is reached through another machine, where its key cannot be asked for" : "no answer";
    outcome.hint = is_behind ? "`ssh NODE` shows its fingerprint" : "is it switched on? `ping NODE`";
    return outcome;
  }
  if (file) {
    const auto found = listed.find(reached.node.name);
    if (found == listed.end()) {
      outcome.why = *file + " does not list it";
      outcome.hint = "on its console: `for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done`";
      return outcome;
    }
    std::erase_if(reached.keys, [&](const fleet::HostKey& key) { return !found->second.contains(key.fingerprint); });
    if (reached.keys.empty()) {
      outcome.why =
          fmt::format("none of the keys that it offers is in {}: somebody else may answer in its place", *file);
      outcome.hint = "look at its console, and at who has its address";
      return outcome;
    }
  } else if (!arguments.flag("accept")) {
    outcome.why = "its host key is not accepted yet";
    outcome.hint =
        "compare the fingerprints with those on its console (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`"
        "), then add --accept, or --fingerprint FILE with what the consoles print";
    return outcome;
  }
  outcome.state = State::pending;
  outcome.why = "its host key is to be written";
  return outcome;
}

/// The keys of nodes that ssh does not know, shown and judged: the accepted ones.
Result<std::vector<Reached>> collect_keys(Context& context, const Arguments& arguments, Trust& trust) {
  std::vector<Reached> unknown;
  for (auto& reached : trust.in(State::host_key)) {
    if (has_changed(trust.outcomes.at(reached.node.name)))
      continue;
    const auto otherwise = is_known_otherwise(context, reached);
    if (!otherwise)
      return fail(otherwise.error());
    if (*otherwise)
      trust.note({changed_key(reached.node)});
    else
      unknown.push_back(std::move(reached));
  }
  if (unknown.empty())
    return unknown;
  if (auto scanned = scan(context, unknown); !scanned)
    return fail(scanned.error());
  show_keys(context, unknown);
  std::map<std::string, std::set<std::string>> listed;
  if (const auto file = arguments.value("fingerprint")) {
    const auto text = context.system.files().read(normalize_path(*file, context.host.working_directory));
    if (!text)
      return fail(text.error());
    listed = fleet::parse_fingerprint_list(*text, unknown);
  }
  std::vector<Reached> accepted;
  for (auto& reached : unknown) {
    const auto outcome = judge(arguments, listed, reached);
    trust.note({outcome});
    if (outcome.state == State::pending)
      accepted.push_back(std::move(reached));
  }
  return accepted;
}

/// The new lines of known_hosts, and that of the authority.
Result<plan::Plan> plan_known_hosts(Context& context, const Arguments& arguments, const Trust& trust,
                                    const std::vector<Reached>& accepted, const std::string& authority) {
  std::map<std::string, std::vector<Reached>> by_file;
  const auto file_of = [&](const Reached& reached) {
    const auto& files = reached.ssh.user_known_hosts;
    return arguments.flag("system") ? k_system_known_hosts
                                    : expand_home(context, files.empty() ? "~/.ssh/known_hosts" : files.front());
  };
  for (const auto& reached : accepted)
    by_file[file_of(reached)].push_back(reached);
  if (!authority.empty() && !trust.nodes.empty())
    by_file[file_of(trust.nodes.front())];
  plan::Plan plan;
  for (const auto& [path, members] : by_file) {
    const auto before = context.system.files().read_if_exists(path);
    if (!before)
      return fail(before.error());
    auto after = members.empty() ? before->value_or("") : fleet::with_host_keys(before->value_or(""), members);
    if (!authority.empty() && path == file_of(trust.nodes.front()))
      after = fleet::with_authority(after, trust.nodes, authority);
    if (after == *before)
      continue;
    const auto directory = parent_path(path);
    if (!context.system.entry({.path = directory, .follow = true}).exists())
      plan.add("", "of ssh", plan::make_directory(directory, 0700));
    std::vector<std::string> names;
    for (const auto& reached : members)
      names.push_back(reached.node.name);
    plan.add("",
             names.empty() ? "host certificates of the authority are believed" : "host keys of " + fleet::fold(names),
             plan::File{path, *before, after, arguments.flag("system") ? 0644U : 0600U});
  }
  return plan;
}

Result<std::string> authority_of(Context& context, const std::string& ca) {
  if (ca.empty())
    return std::string();
  const auto text = file_text(context, ca + ".pub");
  if (text && text->empty())
    return fail(ErrorCode::not_found, fmt::format("there is no public key {}.pub", ca),
                fmt::format("`ssh-keygen -t ed25519 -f {} -C 'hosts of the cluster'` makes an authority; keep it on "
                            "one machine",
                            shell_quote(ca)));
  return text.map([](const std::string& line) { return std::string(trim(line)); });
}

/// Writes known_hosts. A value: the command ends with it.
Result<std::optional<int>> write_known_hosts(Context& context, const Arguments& arguments, Trust& trust,
                                             const std::vector<Reached>& accepted, const std::string& authority) {
  const auto first = plan_known_hosts(context, arguments, trust, accepted, authority);
  if (!first)
    return fail(first.error());
  if (first->empty())
    return std::nullopt;
  const auto executed = execute(context, [&]() -> Result<Proposal> {
    return plan_known_hosts(context, arguments, trust, accepted, authority).map([](plan::Plan plan) {
      return Proposal{std::move(plan), ""};
    });
  });
  if (!executed)
    return fail(executed.error());
  if (!executed->applied() && executed->exit_code == k_exit_ok) // --dry-run
    return std::nullopt;
  if (executed->exit_code != k_exit_ok && !context.flags.check)
    return executed->exit_code;
  if (context.flags.check || accepted.empty())
    return std::nullopt;
  const auto tried = try_login(context, arguments, trust, accepted);
  if (!tried)
    return fail(tried.error());
  trust.note(*tried);
  return std::nullopt;
}

/// Where known_hosts is as it should be: what nodes themselves need.
Result<void> work_on_nodes(Context& context, const Arguments& arguments, Trust& trust, const std::string& ca) {
  constexpr std::chrono::minutes k_longest{10};
  std::optional<LeaseOnServers> lease; // a user's own key is nobody else's business
  if ((!ca.empty() || arguments.flag("mesh")) && !context.flags.check && !context.flags.dry_run) {
    auto taken = LeaseOnServers::take(context, "trust-" + random_letters(8), k_longest);
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
  }
  if (auto brought = bring_key(context, arguments, trust); !brought)
    return brought;
  if (!ca.empty())
    if (auto certified = certify_hosts(context, arguments, trust, ca); !certified)
      return certified;
  return arguments.flag("mesh") ? make_mesh(context, arguments, trust) : Result<void>();
}

Result<int> run_nodes_trust(Context& context, const Arguments& arguments) {
  if (arguments.flag("accept") && arguments.value("fingerprint"))
    return fail(ErrorCode::usage, "--accept and --fingerprint exclude each other", "leave one of the two out");
  const auto pattern = arguments.positional.empty() ? std::string(fleet::k_all) : arguments.positional.front();
  auto nodes = chosen_nodes(context, pattern);
  if (!nodes)
    return fail(nodes.error());
  const auto identity = context.system.identity();
  if (!arguments.flag("mesh"))
    std::erase_if(*nodes, [&](const fleet::Node& node) { return fleet::is_here(identity, node); });
  if (nodes->empty()) {
    context.console.message("this machine is the only one of these nodes: it trusts itself");
    return k_exit_ok;
  }
  const auto lock = lock_fleet(context);
  if (!lock)
    return fail(lock.error());
  Trust trust;
  auto reached = ask_settings(context, *nodes);
  if (!reached)
    return fail(reached.error());
  trust.nodes = std::move(*reached);
  if (auto chosen = choose_key(context, arguments, trust); !chosen)
    return fail(chosen.error());
  std::string ca = arguments.value("ca").value_or("");
  if (!ca.empty())
    ca = normalize_path(expand_home(context, ca), context.host.working_directory);
  const auto authority = authority_of(context, ca);
  const auto tried = authority ? try_login(context, arguments, trust, trust.nodes) : fail(authority.error());
  if (!tried)
    return fail(tried.error());
  trust.note(*tried);
  const auto accepted = collect_keys(context, arguments, trust);
  const auto ended =
      accepted ? write_known_hosts(context, arguments, trust, *accepted, *authority) : fail(accepted.error());
  if (!ended)
    return fail(ended.error());
  if (*ended)
    return **ended;
  if (auto worked = work_on_nodes(context, arguments, trust, ca); !worked)
    return fail(worked.error());
  std::vector<Outcome> outcomes;
  for (const auto& one : trust.nodes)
    outcomes.push_back(trust.outcomes.at(one.node.name));
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

Result<std::string> file_text(Context& context, const std::string& path) {
  return context.system.files().read_if_exists(path).map(
      [](const std::optional<std::string>& text) { return text.value_or(""); });
}

Result<std::vector<std::string>> known_host_lines(Context& context, const Reached& reached) {
  auto files = reached.ssh.user_known_hosts;
  files.insert(files.end(), reached.ssh.global_known_hosts.begin(), reached.ssh.global_known_hosts.end());
  std::vector<std::string> lines;
  for (const auto& file : files) {
    const auto path = expand_home(context, file);
    if (!context.system.entry({.path = path, .follow = true}).exists())
      continue;
    sys::Command command;
    command.argv = {"ssh-keygen", "-F", reached.ssh.known_name(), "-f", path};
    const auto completed = context.system.run(command);
    if (!completed)
      return fail(completed.error());
    for (const auto& line : split_lines(completed->out))
      if (!line.empty() && !line.starts_with('#'))
        lines.push_back(line);
  }
  return lines;
}

std::string expand_home(Context& context, const std::string& path) {
  return path.starts_with("~/") ? join_path(context.system.identity().home, path.substr(2)) : path;
}

Result<std::vector<Outcome>> try_login(Context& context, const Arguments& arguments, const Trust& trust,
                                       const std::vector<Reached>& nodes) {
  fleet::Request request;
  request.asking.script = fleet::login_script();
  request.asking.connect = k_first_contact;
  request.read = [](const fleet::Node& node, const std::string& out, const fleet::Ended& ended) {
    auto outcome = fleet::script_outcome(node, out, ended);
    return ended.errors.find("HAS CHANGED") != std::string::npos ? changed_key(node) : outcome;
  };
  return run_there(context, arguments, trust, nodes, std::move(request), "trying to log in");
}

extern const CommandSpec k_nodes_trust_command{
    .name = "nodes trust",
    .summary = "Let ssh know the nodes, and the nodes this user's key",
    .description =
        "Tries to log in to each node. Of nodes that ssh does not know it shows the fingerprints of their host keys, "
        "and writes them into known_hosts only with --accept, or with --fingerprint where they are those of a list "
        "that "
        "was read on the nodes' consoles. A host key that has changed is refused. Then this user's public key comes "
        "to nodes that do not let it in, where another key, an agent or a password does. --ca is the better way: an "
        "authority certifies the hosts, and one line stands for them all. `sharefs undo` takes known_hosts back.",
    .example = "sharefs nodes trust                              # shows the fingerprints\n"
               "sharefs nodes trust --fingerprint consoles.txt   # accepts those that are listed\n"
               "sharefs nodes trust --accept --ca /root/cluster_ca --mesh",
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
         {.names = "--mesh", .help = "all nodes know each other, too: for launchers that go from node to node"}}),
    .run = run_nodes_trust,
};

} // namespace sharefs::cli

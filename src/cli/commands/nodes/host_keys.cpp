// The part of `nodes trust` about host keys: what nodes offer, whether it is believed, and known_hosts.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/nodes/trust.hpp"
#include "cli/exit_code.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

using fleet::Outcome;
using fleet::Reached;
using fleet::State;

namespace {

/// A slow node is not to be taken for one that is off: what is not reached now stays without trust.
constexpr std::chrono::seconds k_first_contact{15};
constexpr const char* k_system_known_hosts = "/etc/ssh/ssh_known_hosts";

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
Outcome check_keys(const Arguments& arguments, const std::map<std::string, std::set<std::string>>& listed,
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

/// The keys of nodes that ssh does not know, shown and checked: the accepted ones.
Result<std::vector<Reached>> collect_keys(Context& context, const Arguments& arguments, Trust& trust) {
  std::vector<Reached> unknown;
  for (auto& reached : trust.in(State::host_key)) {
    const auto otherwise = is_known_otherwise(context, reached);
    if (!otherwise)
      return fail(otherwise.error());
    if (*otherwise)
      trust.note({fleet::other_host_key(reached.node)});
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
    const auto text = context.system.files().read(given_path(context, *file));
    if (!text)
      return fail(text.error());
    listed = fleet::parse_fingerprint_list(*text, unknown);
  }
  std::vector<Reached> accepted;
  for (auto& reached : unknown) {
    const auto outcome = check_keys(arguments, listed, reached);
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
                                    : given_path(context, files.empty() ? "~/.ssh/known_hosts" : files.front());
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
    plan.add("",
             members.empty() ? "host certificates of the authority are believed" : "host keys of " + folded(members),
             plan::File{path, *before, after, arguments.flag("system") ? 0644U : 0600U});
  }
  return plan;
}

} // namespace

Result<std::optional<int>> accept_host_keys(Context& context, const Arguments& arguments, Trust& trust,
                                            const std::string& ca) {
  std::string authority;
  if (!ca.empty()) {
    auto line = public_key_of(context, ca, "an authority; keep it on one machine");
    if (!line)
      return fail(line.error());
    authority = std::move(*line);
  }
  const auto collected = collect_keys(context, arguments, trust);
  if (!collected)
    return fail(collected.error());
  const auto& accepted = *collected;
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

Result<std::vector<std::string>> known_host_lines(Context& context, const Reached& reached) {
  auto files = reached.ssh.user_known_hosts;
  files.insert(files.end(), reached.ssh.global_known_hosts.begin(), reached.ssh.global_known_hosts.end());
  std::vector<std::string> lines;
  for (const auto& file : files) {
    const auto path = given_path(context, file);
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

Result<std::vector<Outcome>> try_login(Context& context, const Arguments& arguments, const Trust& trust,
                                       const std::vector<Reached>& nodes) {
  fleet::Request request;
  request.asking.script = fleet::login_script();
  request.asking.connect = k_first_contact;
  return run_there(context, arguments, trust, nodes, std::move(request), "trying to log in");
}

} // namespace sharefs::cli

#include "fleet/accept_keys.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr const char* k_system_known_hosts = "/etc/ssh/ssh_known_hosts";

/// True if ssh's known_hosts files have another key for the node. ssh does not report this where the offered key is of
/// another type: it only says that it does not know that key.
Result<bool> has_other_known_key(sys::System& system, const Reached& reached) {
  return known_host_lines(system, reached).map([](const std::vector<std::string>& lines) {
    return std::ranges::any_of(lines, [](const auto& line) { return !line.starts_with("@cert-authority"); });
  });
}

/// Fills in the keys that the nodes offer. ssh-keyscan ends with exit code 0 although hosts are missing: a node that is
/// not in its output did not answer.
Result<void> scan_host_keys(sys::System& system, std::vector<Reached>& nodes) {
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
    TRY_ASSIGN(const auto completed, system.run(command));
    const auto found = parse_keyscan(completed.out);
    for (auto* reached : members)
      if (const auto keys = found.find(reached->ssh.with_port(reached->ssh.host)); keys != found.end())
        reached->keys = keys->second;
  }
  const auto lines = known_hosts_lines(nodes);
  if (lines.empty())
    return {};
  TRY_ASSIGN(const auto printed, output_of(system, {"ssh-keygen", "-l", "-f", "-"}, lines));
  return read_fingerprints(printed, nodes);
}

/// Returns `pending`, or the reason why no key of the node is accepted. Only accepted keys stay in `reached`.
Outcome check_keys(const Acceptance& acceptance, const std::map<std::string, std::set<std::string>>& listed,
                   Reached& reached) {
  Outcome outcome{.node = reached.node.name, .state = State::host_key};
  if (reached.keys.empty()) {
    const bool is_behind = !reached.ssh.proxy_jump.empty() || !reached.ssh.proxy_command.empty();
    outcome.state = is_behind ? State::host_key : State::unreachable;
    outcome.why = is_behind ? "it is reached through another machine, where its key cannot be asked for" : "no answer";
    outcome.hint = is_behind ? "`ssh NODE` shows its fingerprint" : "is it switched on? `ping NODE`";
    return outcome;
  }
  if (!acceptance.list.empty()) {
    const auto found = listed.find(reached.node.name);
    if (found == listed.end()) {
      outcome.why = acceptance.list + " does not list it";
      outcome.hint = "on its console: `for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done`";
      return outcome;
    }
    std::erase_if(reached.keys, [&](const HostKey& key) { return !found->second.contains(key.fingerprint); });
    if (reached.keys.empty()) {
      outcome.why = fmt::format("none of the keys that it offers is in {}: somebody else may answer in its place",
                                acceptance.list);
      outcome.hint = "look at its console, and at who has its address";
      return outcome;
    }
  } else if (!acceptance.all) {
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

} // namespace

Result<std::vector<std::string>> known_host_lines(sys::System& system, const Reached& reached) {
  auto files = reached.ssh.user_known_hosts;
  files.insert(files.end(), reached.ssh.global_known_hosts.begin(), reached.ssh.global_known_hosts.end());
  std::vector<std::string> lines;
  for (const auto& path : files) {
    if (!system.entry({.path = path, .follow = true}).exists())
      continue;
    TRY_ASSIGN(const auto completed, system.run({.argv = {"ssh-keygen", "-F", reached.ssh.known_name(), "-f", path}}));
    for (const auto& line : split_lines(completed.out))
      if (!line.empty() && !line.starts_with('#'))
        lines.push_back(line);
  }
  return lines;
}

Result<std::vector<Reached>> find_host_keys(Trust& trust) {
  std::vector<Reached> unknown;
  for (auto& reached : trust.in(State::host_key)) {
    TRY_ASSIGN(const auto otherwise, has_other_known_key(trust.system, reached));
    if (otherwise)
      trust.note({other_host_key(reached.node)});
    else
      unknown.push_back(std::move(reached));
  }
  TRY(scan_host_keys(trust.system, unknown));
  return unknown;
}

Result<std::vector<Reached>> accept_keys(Trust& trust, std::vector<Reached> unknown, const Acceptance& acceptance) {
  std::map<std::string, std::set<std::string>> listed;
  if (!acceptance.list.empty() && !unknown.empty()) {
    TRY_ASSIGN(const auto text, trust.system.files().read(acceptance.list));
    listed = parse_fingerprint_list(text, unknown);
  }
  std::vector<Reached> accepted;
  for (auto& reached : unknown) {
    const auto outcome = check_keys(acceptance, listed, reached);
    trust.note({outcome});
    if (outcome.state == State::pending)
      accepted.push_back(std::move(reached));
  }
  return accepted;
}

Result<plan::Plan> plan_known_hosts(const Trust& trust, const std::vector<Reached>& accepted,
                                    const std::string& authority, bool for_all_users) {
  std::map<std::string, std::vector<Reached>> by_file;
  const auto file_of = [&](const Reached& reached) {
    const auto& files = reached.ssh.user_known_hosts;
    return for_all_users   ? k_system_known_hosts
           : files.empty() ? join_path(trust.system.identity().home, ".ssh/known_hosts")
                           : files.front();
  };
  for (const auto& reached : accepted)
    by_file[file_of(reached)].push_back(reached);
  if (!authority.empty() && !trust.nodes.empty())
    by_file[file_of(trust.nodes.front())];
  plan::Plan plan;
  for (const auto& [path, members] : by_file) {
    TRY_ASSIGN(const auto before, trust.system.files().read_if_exists(path));
    auto after = members.empty() ? before.value_or("") : with_host_keys(before.value_or(""), members);
    if (!authority.empty() && path == file_of(trust.nodes.front()))
      after = with_authority(after, trust.nodes, authority);
    if (after == before)
      continue;
    const auto directory = parent_path(path);
    if (!trust.system.entry({.path = directory, .follow = true}).exists())
      plan.add("", "of ssh", plan::make_directory(directory, 0700));
    plan.add("",
             members.empty() ? "host certificates of the authority are believed" : "host keys of " + folded(members),
             plan::File{path, before, after, for_all_users ? 0644U : 0600U});
  }
  return plan;
}

} // namespace sharefs::fleet

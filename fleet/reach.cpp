#include "fleet/reach.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "fleet/script.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>
#include <utility>

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
  const auto end = [&](State state, std::string why, std::string hint = {}) {
    return Outcome{.node = reached.node.name, .state = state, .why = std::move(why), .hint = std::move(hint)};
  };
  const bool is_behind = !reached.ssh.proxy_jump.empty() || !reached.ssh.proxy_command.empty();
  if (reached.keys.empty() && is_behind)
    return end(State::host_key, "it is reached through another machine, where its key cannot be asked for",
               "`ssh NODE` shows its fingerprint");
  if (reached.keys.empty())
    return end(State::unreachable, "no answer", "is it switched on? `ping NODE`");
  if (!acceptance.list.empty()) {
    const auto found = listed.find(reached.node.name);
    if (found == listed.end())
      return end(State::host_key, acceptance.list + " does not list it",
                 "on its console: `for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done`");
    std::erase_if(reached.keys, [&](const HostKey& key) { return !found->second.contains(key.fingerprint); });
    if (reached.keys.empty())
      return end(State::host_key,
                 fmt::format("none of the keys that it offers is in {}: somebody else may answer in its place",
                             acceptance.list),
                 "look at its console, and at who has its address");
  } else if (!acceptance.all) {
    return end(State::host_key, "its host key is not accepted yet",
               "compare the fingerprints with those on its console (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`"
               "), then add --accept, or --fingerprint FILE with what the consoles print");
  }
  return end(State::pending, "its host key is to be written");
}

/// Returns the file to which new host keys of the node are written. Error `conflict` if ssh has none that keeps them.
Result<std::string> find_known_hosts(sys::System& system, const Reached& reached) {
  const auto& files = reached.ssh.user_known_hosts;
  for (const auto& file : files)
    if (const auto entry = system.entry({.path = file, .follow = true});
        !entry.exists() || entry.kind == sys::EntryKind::file)
      return file;
  if (files.empty())
    return join_path(system.identity().home, ".ssh/known_hosts");
  return fail(
      ErrorCode::conflict,
      fmt::format("{}: ssh_config sends its host key to {}, which keeps nothing", reached.node.name, files.front()),
      "remove that `UserKnownHostsFile`, or write /etc/ssh/ssh_known_hosts: add `--system`");
}

} // namespace

Result<std::string> output_of(sys::System& system, const Argv& argv, const std::string& input) {
  TRY_ASSIGN(const auto completed, system.run({.argv = argv, .input = input, .deadline = std::chrono::seconds(60)}));
  if (!completed.ok())
    return fail(ErrorCode::failed, fmt::format("`{}` failed: {}", shell_join(argv), trim(completed.err)));
  return completed.out;
}

Result<std::string> read_public_key(sys::System& system, const std::string& key, const std::string& what) {
  TRY_ASSIGN(const auto text, system.files().read_if_exists(key + ".pub"));
  if (text.value_or("").empty())
    return fail(ErrorCode::not_found, fmt::format("there is no public key {}.pub", key),
                fmt::format("`ssh-keygen -t ed25519 -f {}` makes {}", shell_quote(key), what));
  return std::string(trim(*text));
}

Result<std::string> fingerprint_of(sys::System& system, const std::string& file) {
  TRY_ASSIGN(const auto printed, output_of(system, {"ssh-keygen", "-l", "-f", file}));
  const auto words = split_words(printed);
  if (words.size() < 2)
    return fail(ErrorCode::failed, fmt::format("{}: `ssh-keygen -l` gives no fingerprint", file));
  return words[1];
}

Argv ssh_words(const Node& node) {
  Argv words;
  if (!node.address.empty())
    words.insert(words.end(), {"-o", "HostName=" + node.address});
  if (!node.user.empty())
    words.insert(words.end(), {"-l", node.user});
  words.insert(words.end(), {"--", node.name});
  return words;
}

Result<std::vector<Reached>> read_ssh_settings(sys::System& system, const std::vector<Node>& nodes) {
  const auto home = system.identity().home;
  TRY_ASSIGN(const auto defaults, output_of(system, {"ssh", "-F", "none", "-G", "localhost"}));
  std::vector<Reached> reached;
  for (const auto& node : nodes) {
    Argv argv = ssh_words(node);
    argv.insert(argv.begin(), {"ssh", "-G"});
    TRY_ASSIGN(const auto said, output_of(system, argv));
    reached.push_back({node, parse_ssh_settings(said, home, defaults), {}});
  }
  return reached;
}

std::vector<Reached> nodes_in_state(State state, const std::vector<Reached>& nodes,
                                    const std::vector<Outcome>& outcomes) {
  std::set<std::string_view> names;
  for (const auto& outcome : outcomes)
    if (outcome.state == state)
      names.insert(outcome.node);
  auto found = nodes;
  std::erase_if(found, [&](const Reached& reached) { return !names.contains(reached.node.name); });
  return found;
}

std::string folded(const std::vector<Reached>& nodes) {
  std::vector<std::string> names;
  for (const auto& reached : nodes)
    names.push_back(reached.node.name);
  return fold(names);
}

Result<void> Trust::begin(const std::vector<Node>& named, const std::string& given) {
  TRY_ASSIGN(nodes, read_ssh_settings(system, named));
  std::map<std::string, std::string> lines; // of public keys, by file; "" where there is none
  for (auto& reached : nodes) {
    auto files = reached.ssh.identity_files;
    if (!given.empty())
      files = {given.ends_with(".pub") ? given.substr(0, given.size() - 4) : given};
    for (const auto& file : files) {
      if (!lines.contains(file)) {
        const auto line = read_public_key(system, file);
        if (!line && (!given.empty() || line.error().code != ErrorCode::not_found))
          return fail(line.error());
        lines[file] = line.value_or("");
      }
      if (lines[file].empty())
        continue;
      reached.key = file;
      if (key.empty())
        std::tie(key, public_key) = std::tie(file, lines[file]);
      break;
    }
  }
  return {};
}

std::vector<Reached> Trust::in(State state) const {
  std::vector<Reached> found;
  for (const auto& reached : nodes)
    if (const auto outcome = outcomes.find(reached.node.name);
        outcome != outcomes.end() && outcome->second.state == state)
      found.push_back(reached);
  return found;
}

std::vector<Reached> Trust::nodes_with_login() const {
  auto found = in(State::ok);
  const auto fresh = in(State::changed);
  found.insert(found.end(), fresh.begin(), fresh.end());
  return found;
}

void Trust::note(const std::vector<Outcome>& newer) {
  for (const auto& outcome : newer)
    outcomes.insert_or_assign(outcome.node, outcome);
}

Result<std::vector<Outcome>> Trust::run_on(const std::vector<Reached>& there, Request request,
                                           const std::string& what) const {
  request.asking.always_by_ssh = true;
  if (request.asking.ssh.size() == 1)
    request.asking.ssh = {"ssh", "-o", "StrictHostKeyChecking=yes"};
  if (!request.read)
    request.read = script_outcome;
  std::vector<Node> plain;
  for (const auto& reached : there)
    plain.push_back(reached.node);
  return run(plain, std::move(request), what);
}

Result<void> Trust::try_login(const std::vector<Reached>& there, const std::string& changed) {
  if (there.empty())
    return {};
  Request request;
  request.asking.script = script_of({}, "end_well \"\"\n");
  request.asking.connect = k_first_contact;
  request.ssh_config = ssh_config_with_key(there);
  TRY_ASSIGN(auto tried, run_on(there, std::move(request), "trying to log in"));
  for (auto& outcome : tried)
    if (outcome.state == State::ok && !changed.empty()) {
      outcome.state = State::changed;
      outcome.why = changed;
    }
  note(tried);
  return {};
}

Result<void> Trust::try_mesh() {
  const auto ring = nodes_with_login();
  Request step;
  step.asking.script =
      script_of({{"grant", "next"}, {"options", shell_join(ssh_options(std::chrono::seconds(5)))}}, k_trust_script);
  step.ssh_config = ssh_config_with_key(ring);
  for (std::size_t i = 0; i < ring.size(); ++i)
    step.inputs[ring[i].node.name] = ring[(i + 1) % ring.size()].node.name + "\n";
  TRY_ASSIGN(const auto stepped, run_on(ring, step, "going from node to node"));
  for (auto outcome : stepped)
    if (outcome.state != State::ok) {
      outcome.hint = "the user needs a key there, as with a home on the share, or hostbased authentication";
      note({outcome});
    }
  return {};
}

void Trust::explain_denied() {
  for (const auto& reached : in(State::denied)) {
    auto& outcome = outcomes.at(reached.node.name);
    if (reached.key.empty()) {
      outcome.why = "ssh does not let this user in, because there is no key";
      outcome.hint = "`ssh-keygen -t ed25519` makes one; then `sharefs nodes trust NODE`";
    } else if (reached.key != key) {
      outcome.hint = fmt::format("ssh uses {} for it: `sharefs nodes trust NODE` brings that key", reached.key);
    } else {
      outcome.hint = fmt::format("a password is needed once: `--password-file FILE`; or add this line to "
                                 "~/.ssh/authorized_keys there: {}",
                                 public_key);
    }
  }
}

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
    auto parsed = parse_fingerprint_list(text, unknown);
    if (!parsed)
      return fail(parsed.error().code, acceptance.list + ": " + parsed.error().message, parsed.error().hint);
    listed = std::move(*parsed);
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
    return for_all_users ? Result<std::string>(k_system_known_hosts) : find_known_hosts(trust.system, reached);
  };
  for (const auto& reached : accepted) {
    TRY_ASSIGN(const auto file, file_of(reached));
    by_file[file].push_back(reached);
  }
  std::string of_authority;
  if (!authority.empty() && !trust.nodes.empty()) {
    TRY_ASSIGN(of_authority, file_of(trust.nodes.front()));
    by_file[of_authority];
  }
  plan::Plan plan;
  for (const auto& [path, members] : by_file) {
    TRY_ASSIGN(const auto before, trust.system.files().read_if_exists(path));
    auto after = members.empty() ? before.value_or("") : with_host_keys(before.value_or(""), members);
    if (path == of_authority)
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

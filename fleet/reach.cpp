#include "fleet/reach.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "fleet/script.hpp"

#include <fmt/format.h>
#include <set>

namespace sharefs::fleet {

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
  std::vector<Reached> reached;
  for (const auto& node : nodes) {
    Argv argv = ssh_words(node);
    argv.insert(argv.begin(), {"ssh", "-G"});
    TRY_ASSIGN(const auto said, output_of(system, argv));
    reached.push_back({node, parse_ssh_settings(said, home), {}});
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
  auto files = nodes.empty() ? std::vector<std::string>{} : nodes.front().ssh.identity_files;
  if (!given.empty())
    files = {given.ends_with(".pub") ? given.substr(0, given.size() - 4) : given};
  for (const auto& file : files) {
    const auto line = read_public_key(system, file);
    if (!line && (!given.empty() || line.error().code != ErrorCode::not_found))
      return fail(line.error());
    if (!line)
      continue;
    key = file;
    public_key = *line;
    break;
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
  if (request.ssh_config.empty())
    request.ssh_config = ssh_config_with_key(there, key);
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
  step.asking.script = script_of({{"grant", "next"}}, k_trust_script);
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
    if (key.empty()) {
      outcome.why = "ssh does not let this user in, because there is no key";
      outcome.hint = "`ssh-keygen -t ed25519` makes one; then `sharefs nodes trust NODE`";
    } else {
      outcome.hint = fmt::format("a password is needed once: `--password-file FILE`; or add this line to "
                                 "~/.ssh/authorized_keys there: {}",
                                 public_key);
    }
  }
}

} // namespace sharefs::fleet

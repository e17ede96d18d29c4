// What `nodes trust` does on the nodes themselves: the user's key, host certificates, known hosts of all.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/nodes/scratch.hpp"
#include "cli/commands/nodes/trust.hpp"
#include "cli/execute.hpp"
#include "cli/fleet_view.hpp"
#include "fleet/trust.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using fleet::Outcome;
using fleet::Reached;
using fleet::State;

Outcome pending_step(const std::string& node, const std::string& description, const std::string& why) {
  Outcome outcome{.node = node, .state = State::pending, .why = "1 step to do"};
  auto steps = nlohmann::ordered_json::array({{{"description", description}, {"why", why}}});
  outcome.document = {{"plan", {{"steps", std::move(steps)}}}};
  return outcome;
}

/// Shows what these nodes have to do; true: it shall be done now. With --check and --dry-run it stays pending.
Result<bool> agree_on(Context& context, Trust& trust, const std::vector<Outcome>& pending) {
  if (pending.empty())
    return false;
  show_plans(context, pending);
  if (context.flags.check || context.flags.dry_run) {
    trust.note(pending);
    return false;
  }
  return ask_consent(context);
}

/// ssh that is given the password of a file, and nothing else to log in with. The password itself never stands on a
/// command line.
Result<Argv> ssh_with_password(Context& context, const Scratch& scratch, const std::string& given) {
  constexpr std::uint32_t k_others = 077;
  const auto file = normalize_path(expand_home(context, given), context.host.working_directory);
  const auto entry = context.system.entry({.path = file, .follow = true});
  if (entry.kind != sys::EntryKind::file)
    return fail(ErrorCode::not_found, fmt::format("there is no file {}", file));
  if (entry.uid != context.system.identity().uid || (entry.mode & k_others) != 0)
    return fail(ErrorCode::permission, fmt::format("{} can be read by others", file),
                fmt::format("`chmod 600 {}`", shell_quote(file)));
  const auto program = scratch.write("askpass", "#!/bin/sh\nexec cat " + single_quote(file) + "\n");
  const auto made = program ? output_of(context, {"chmod", "0700", *program}) : fail(program.error());
  if (!made)
    return fail(made.error());
  return Argv{"env",
              "SSH_ASKPASS=" + *program,
              "SSH_ASKPASS_REQUIRE=force",
              "DISPLAY=:0",
              "ssh",
              "-o",
              "BatchMode=no",
              "-o",
              "StrictHostKeyChecking=yes",
              "-o",
              "NumberOfPasswordPrompts=1",
              "-o",
              "PubkeyAuthentication=no",
              "-o",
              "PreferredAuthentications=password,keyboard-interactive"};
}

/// The lines of this machine's known_hosts for these nodes, by plain names.
Result<std::string> known_lines(Context& context, const std::vector<Reached>& nodes) {
  std::vector<std::string> lines;
  for (const auto& reached : nodes) {
    const auto known = known_host_lines(context, reached);
    if (!known)
      return fail(known.error());
    auto one = reached;
    for (const auto& line : *known) {
      const auto words = split_words(line);
      if (line.starts_with("@cert-authority"))
        lines.push_back(line);
      else if (words.size() >= 3 && !line.starts_with('@'))
        one.keys.push_back({words[1], words[2], ""});
    }
    for (const auto& line : split_lines(fleet::known_hosts_lines({one})))
      lines.push_back(line);
  }
  std::vector<std::string> once;
  for (const auto& line : lines)
    if (std::ranges::find(once, line) == once.end())
      once.push_back(line);
  return once.empty() ? std::string() : join(once, "\n") + "\n";
}

/// Of one public key of a host: its certificate.
Result<std::string> certificate_for(Context& context, const Scratch& scratch, const std::string& ca,
                                    const Reached& reached, const fleet::OwnHostKey& key, std::size_t number) {
  const auto name = fmt::format("{}-{}", reached.node.name, number);
  const auto file = scratch.write(name + ".pub", key.public_key + "\n");
  if (!file)
    return fail(file.error());
  const auto signed_it = output_of(context, {"ssh-keygen", "-q", "-s", ca, "-I", reached.node.name, "-h", "-n",
                                             join(fleet::names_of(reached), ","), *file});
  if (!signed_it)
    return fail(signed_it.error());
  return scratch.read(name + "-cert.pub").map([](const std::string& text) { return std::string(trim(text)); });
}

} // namespace

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
  auto run = run_script(context, arguments, plain, std::move(request), false, what);
  if (run && run->interrupted)
    return fail(ErrorCode::interrupted, "interrupted");
  return run ? Result<std::vector<Outcome>>(std::move(run->outcomes)) : fail(run.error());
}

Result<void> bring_key(Context& context, const Arguments& arguments, Trust& trust) {
  const auto denied = trust.in(State::denied);
  if (denied.empty())
    return {};
  if (trust.key.empty()) {
    for (const auto& reached : denied) {
      auto& outcome = trust.outcomes.at(reached.node.name);
      outcome.why = "ssh does not let this user in, who has no key";
      outcome.hint = "`ssh-keygen -t ed25519` makes one; then `sharefs nodes trust NODE`";
    }
    return {};
  }
  std::vector<Outcome> pending;
  for (const auto& reached : denied)
    pending.push_back(pending_step(reached.node.name, fmt::format("add {}.pub to ~/.ssh/authorized_keys", trust.key),
                                   "of " + reached.ssh.user));
  const auto agreed = agree_on(context, trust, pending);
  if (!agreed || !*agreed)
    return agreed ? Result<void>() : fail(agreed.error());
  const auto scratch = Scratch::make(context, "trust");
  if (!scratch)
    return fail(scratch.error());
  fleet::Request request;
  request.asking.script = fleet::add_key_script();
  for (const auto& reached : denied)
    request.inputs[reached.node.name] = trust.public_key + "\n";
  request.ssh_config = fleet::ssh_config_with_key(denied, ""); // whatever lets the user in
  auto brought = run_there(context, arguments, trust, denied, request, "bringing the key");
  if (!brought)
    return fail(brought.error());
  std::vector<Reached> left;
  for (const auto& outcome : *brought)
    if (outcome.state == State::denied)
      left.push_back(*std::ranges::find(denied, outcome.node, [](const Reached& one) { return one.node.name; }));
  if (const auto password = arguments.value("password-file"); password && !left.empty()) {
    auto ssh = ssh_with_password(context, *scratch, *password);
    if (!ssh)
      return fail(ssh.error());
    request.asking.ssh = std::move(*ssh);
    brought = run_there(context, arguments, trust, left, request, "bringing the key");
    if (!brought)
      return fail(brought.error());
  }
  auto tried = try_login(context, arguments, trust, denied); // with this key alone: another one may have let us in
  if (!tried)
    return fail(tried.error());
  for (auto& outcome : *tried) {
    if (outcome.state == State::ok) {
      outcome.state = State::changed;
      outcome.why = "the key is there now";
    } else if (outcome.state == State::denied) {
      outcome.hint = fmt::format("a password is needed once: `--password-file FILE`; or add this line to "
                                 "~/.ssh/authorized_keys there: {}",
                                 trust.public_key);
    }
  }
  trust.note(*tried);
  return {};
}

Result<void> certify_hosts(Context& context, const Arguments& arguments, Trust& trust, const std::string& ca) {
  const auto printed = output_of(context, {"ssh-keygen", "-l", "-f", ca + ".pub"});
  if (!printed)
    return fail(printed.error());
  const auto words = split_words(*printed);
  const auto open = trust.open();
  if (words.size() < 2 || open.empty())
    return {};
  fleet::Request ask;
  ask.asking.script = fleet::host_keys_script(words[1]);
  ask.asking.as_root = true;
  std::map<std::string, std::vector<fleet::OwnHostKey>> keys;
  ask.read = [&keys](const fleet::Node& node, const std::string& out, const fleet::Ended& ended) {
    const auto found = fleet::parse_own_host_keys(out);
    if (found)
      keys[node.name] = *found;
    return found ? Outcome{.node = node.name, .state = State::ok} : fleet::script_outcome(node, out, ended);
  };
  const auto asked = run_there(context, arguments, trust, open, ask, "asking for host keys");
  if (!asked)
    return fail(asked.error());
  std::vector<Outcome> pending;
  std::vector<Reached> lacking;
  for (const auto& outcome : *asked) {
    if (outcome.state != State::ok) {
      trust.note({outcome});
      continue;
    }
    if (std::ranges::all_of(keys[outcome.node], &fleet::OwnHostKey::certified))
      continue;
    pending.push_back(pending_step(outcome.node, "certify the host keys, in /etc/ssh/sshd_config.d/10-sharefs.conf",
                                   "sshd is reloaded"));
    lacking.push_back(*std::ranges::find(open, outcome.node, [](const Reached& one) { return one.node.name; }));
  }
  const auto agreed = agree_on(context, trust, pending);
  if (!agreed || !*agreed)
    return agreed ? Result<void>() : fail(agreed.error());
  const auto scratch = Scratch::make(context, "trust");
  if (!scratch)
    return fail(scratch.error());
  fleet::Request request;
  request.asking.script = fleet::certify_script();
  request.asking.as_root = true;
  for (const auto& reached : lacking) {
    std::size_t number = 0;
    for (const auto& key : keys[reached.node.name]) {
      const auto certificate = certificate_for(context, *scratch, ca, reached, key, number++);
      if (!certificate)
        return fail(certificate.error());
      request.inputs[reached.node.name] += key.path + " " + *certificate + "\n";
    }
  }
  const auto done = run_there(context, arguments, trust, lacking, request, "certifying host keys");
  if (done)
    trust.note(*done);
  return done ? Result<void>() : fail(done.error());
}

Result<void> make_mesh(Context& context, const Arguments& arguments, Trust& trust) {
  const auto open = trust.open();
  const auto lines = known_lines(context, open);
  if (!lines)
    return fail(lines.error());
  fleet::Request request;
  request.asking.script = fleet::known_hosts_script(true);
  request.asking.as_root = true;
  for (const auto& reached : open)
    request.inputs[reached.node.name] = *lines;
  request.read = [](const fleet::Node& node, const std::string& out, const fleet::Ended& ended) {
    auto outcome = fleet::script_outcome(node, out, ended);
    for (const auto& [key, value] : fleet::said_lines(out))
      if (key == "missing" && outcome.state == State::ok)
        outcome = pending_step(node.name, "write /etc/ssh/ssh_known_hosts", value + " lines are missing");
    return outcome;
  };
  const auto asked = run_there(context, arguments, trust, open, request, "asking for known hosts");
  if (!asked)
    return fail(asked.error());
  std::vector<Outcome> pending;
  std::vector<Reached> lacking;
  for (const auto& outcome : *asked)
    if (outcome.state == State::pending) {
      pending.push_back(outcome);
      lacking.push_back(*std::ranges::find(open, outcome.node, [](const Reached& one) { return one.node.name; }));
    } else if (outcome.state != State::ok) {
      trust.note({outcome});
    }
  const auto agreed = agree_on(context, trust, pending);
  if (!agreed)
    return fail(agreed.error());
  if (*agreed) {
    request.asking.script = fleet::known_hosts_script(false);
    request.read = nullptr;
    const auto done = run_there(context, arguments, trust, lacking, request, "writing known hosts");
    if (!done)
      return fail(done.error());
    trust.note(*done);
  } else if (!pending.empty()) {
    return {};
  }
  // From each to the next one: that all pairs can would take as many logins as there are pairs.
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

} // namespace sharefs::cli

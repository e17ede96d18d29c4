// sharefs nodes grant: one thing that ssh needs on nodes, and its way back. `nodes trust` starts it as a step of its
// plan, so that `undo` takes it away again.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/nodes/scratch.hpp"
#include "cli/commands/nodes/trust.hpp"
#include "cli/exit_code.hpp"
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

/// ssh that is given the password of a file, and nothing else to log in with. The password itself never stands on a
/// command line.
Result<Argv> ssh_with_password(Context& context, const Scratch& scratch, const std::string& given) {
  constexpr std::uint32_t k_others = 077;
  const auto file = given_path(context, given);
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

/// "TYPE KEY" of a public key's line.
std::string bare_key(const std::string& line) {
  const auto words = split_words(line);
  return words.size() < 2 ? std::string() : words[0] + " " + words[1];
}

/// What stands behind the key, for a line of another machine.
std::string comment_of(const std::string& line) {
  auto words = split_words(line);
  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)));
  auto text = join(words, " ");
  std::erase_if(text, [](char one) { return one < ' ' || one > '~' || one == '\\'; });
  return text;
}

/// The lines of this machine's known_hosts for these nodes, by plain names.
Result<std::string> known_lines(Context& context, const std::vector<Reached>& nodes) {
  std::string lines;
  for (auto reached : nodes) {
    const auto known = known_host_lines(context, reached);
    if (!known)
      return fail(known.error());
    for (const auto& line : *known) {
      const auto words = split_words(line);
      if (line.starts_with("@cert-authority"))
        lines += join(words, " ") + "\n";
      else if (words.size() >= 3 && !line.starts_with('@'))
        reached.keys.push_back({words[1], words[2], ""});
    }
    lines += fleet::known_hosts_lines({reached});
  }
  return lines; // the nodes take a line once
}

/// The certificates of a node's host keys, "PATH CERTIFICATE" in each line.
Result<std::string> certificates_for(Context& context, const Scratch& scratch, const std::string& ca,
                                     const Reached& reached, const std::vector<fleet::OwnHostKey>& keys) {
  std::string lines;
  for (const auto& key : keys) {
    const auto name = fmt::format("{}-{}", reached.node.name, &key - keys.data());
    const auto file = scratch.write(name + ".pub", key.public_key + "\n");
    const auto made = file ? output_of(context, {"ssh-keygen", "-q", "-s", ca, "-I", reached.node.name, "-h", "-n",
                                                 join(fleet::names_of(reached), ","), *file})
                           : fail(file.error());
    const auto certificate = made ? scratch.read(name + "-cert.pub") : fail(made.error());
    if (!certificate)
      return fail(certificate.error());
    lines += key.path + " " + std::string(trim(*certificate)) + "\n";
  }
  return lines;
}

/// What the script of each node reads.
Result<std::map<std::string, std::string>> inputs_of(Context& context, const Trust& trust,
                                                     const std::vector<Reached>& nodes, const Granting& granting) {
  Result<std::string> text;
  if (granting.grant == Grant::key)
    text = bare_key(trust.public_key) + "\n";
  else if (granting.grant == Grant::mesh)
    text = known_lines(context, granting.mesh);
  else if (granting.grant == Grant::users)
    text = public_key_of(context, granting.ca, "").map([](const auto& line) { return bare_key(line) + "\n"; });
  else
    text = fingerprint_of(context, granting.ca + ".pub").map([](const auto& print) { return print + "\n"; });
  if (!text)
    return fail(text.error());
  std::map<std::string, std::string> inputs;
  for (const auto& reached : nodes)
    inputs[reached.node.name] = *text;
  return inputs;
}

/// Whatever lets this user in is tried: keys, an agent, then the password.
Result<std::vector<Outcome>> run_by_any(Context& context, const Arguments& arguments, const Trust& trust,
                                        const std::vector<Reached>& nodes, fleet::Request request,
                                        const Scratch& scratch, const Granting& granting) {
  request.ssh_config = fleet::ssh_config_with_key(nodes, "");
  auto outcomes = run_there(context, arguments, trust, nodes, request, "working on nodes");
  if (!outcomes || !granting.password)
    return outcomes;
  const auto denied = fleet::those_in(State::denied, *outcomes);
  if (denied.empty())
    return outcomes;
  auto ssh = ssh_with_password(context, scratch, *granting.password);
  if (!ssh)
    return fail(ssh.error());
  request.asking.ssh = std::move(*ssh);
  auto again = run_there(context, arguments, trust, those_of(nodes, denied), request, "working on nodes");
  if (!again)
    return again;
  fleet::replace(*outcomes, std::move(*again));
  return outcomes;
}

Result<int> run_nodes_grant(Context& context, const Arguments& arguments) {
  const auto grant = fleet::grant_from(arguments.positional.at(0));
  const auto mark = arguments.value("mark").value_or("");
  if (!grant)
    return fail(ErrorCode::usage, fmt::format("`nodes grant` does not know `{}`", arguments.positional.at(0)),
                "one of key, hosts, users, mesh");
  if (mark.empty() || mark.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
    return fail(ErrorCode::usage, "option `--mark` needs letters and digits: what the lines are known by later");
  const auto nodes = chosen_nodes(context, arguments.positional.at(1));
  const auto all = nodes && arguments.value("of") ? chosen_nodes(context, *arguments.value("of")) : nodes;
  const auto trust = all ? begin_trust(context, arguments, *nodes) : fail(all.error());
  auto mesh = !trust                  ? fail(trust.error())
              : arguments.value("of") ? begin_trust(context, arguments, *all)
                                      : Result<Trust>(Trust{});
  if (!mesh)
    return fail(mesh.error());
  const Granting granting{*grant, given_path(context, arguments.value("ca").value_or("")), std::move(mesh->nodes), mark,
                          arguments.value("password-file")};
  const auto outcomes = grant_on_nodes(context, arguments, *trust, trust->nodes, granting,
                                       arguments.flag("remove") ? GrantWork::remove : GrantWork::add);
  if (!outcomes)
    return fail(outcomes.error());
  show_outcomes(context, *outcomes);
  if (const auto name = arguments.value("record")) {
    const auto directory = record_of_grant(context, *name);
    const auto made =
        directory ? plan::PrivateDirectory::make(context.system.files(), *directory) : fail(directory.error());
    const auto written = made ? fleet::write_outcomes(*made, *outcomes) : fail(made.error());
    return written ? Result<int>(k_exit_ok) : fail(written.error()); // whoever reads it says what failed
  }
  return fleet::exit_code_of(*outcomes);
}

} // namespace

Result<std::string> record_of_grant(Context& context, const std::string& name) {
  return fleet_directory(context).map([&](const std::string& above) { return join_path(above, "grant-" + name); });
}

Result<std::vector<Outcome>> grant_on_nodes(Context& context, const Arguments& arguments, const Trust& trust,
                                            const std::vector<Reached>& nodes, const Granting& granting,
                                            GrantWork work) {
  const auto scratch = Scratch::make(context, "grant");
  if (!scratch)
    return fail(scratch.error());
  fleet::Request request;
  request.asking.as_root = granting.grant != Grant::key;
  const auto comment = granting.grant == Grant::key ? comment_of(trust.public_key) : std::string();
  if (work != GrantWork::remove) {
    const auto inputs = inputs_of(context, trust, nodes, granting);
    if (!inputs)
      return fail(inputs.error());
    request.inputs = *inputs;
  }
  if (work != GrantWork::add || granting.grant != Grant::hosts) {
    request.asking.script = fleet::grant_script(granting.grant, work, granting.mark, comment);
    return run_by_any(context, arguments, trust, nodes, request, *scratch, granting);
  }
  // The certificates are made here, of the keys that the nodes say they have.
  std::map<std::string, std::string> certificates;
  request.asking.script = fleet::grant_script(Grant::hosts, GrantWork::look, granting.mark, comment);
  std::optional<Error> problem;
  request.read = [&](const fleet::Node& node, const std::string& out, const fleet::Ended& ended) {
    const auto reached = std::ranges::find(nodes, node.name, [](const Reached& one) { return one.node.name; });
    const auto lines = certificates_for(context, *scratch, granting.ca, *reached, fleet::parse_own_host_keys(out));
    if (lines)
      certificates[node.name] = *lines;
    else
      problem = lines.error();
    return fleet::script_outcome(node, out, ended);
  };
  auto outcomes = run_by_any(context, arguments, trust, nodes, request, *scratch, granting);
  if (!outcomes || problem)
    return problem ? fail(*problem) : outcomes;
  const auto pending = fleet::those_in(State::pending, *outcomes);
  if (pending.empty())
    return outcomes;
  request.read = nullptr;
  request.inputs = std::move(certificates);
  request.asking.script = fleet::grant_script(Grant::hosts, GrantWork::add, granting.mark, comment);
  auto added = run_by_any(context, arguments, trust, those_of(nodes, pending), request, *scratch, granting);
  if (!added)
    return added;
  fleet::replace(*outcomes, std::move(*added));
  return outcomes;
}

extern const CommandSpec k_nodes_grant_command{
    .name = "nodes grant",
    .summary = "Bring one thing to nodes that ssh needs there, as `nodes trust` does it, or take it away",
    .description =
        "`key`: this user's public key in authorized_keys; `hosts`: certificates of the host keys by the authority "
        "--ca; `users`: user certificates of the authority --ca are believed; `mesh`: the host keys of all nodes in "
        "/etc/ssh/ssh_known_hosts. --remove takes away the lines that were added with this mark, and no others.",
    .example = "sharefs nodes grant key gpu07 --mark k3x9              # as a step of `sharefs nodes trust`\n"
               "sharefs nodes grant key gpu07 --mark k3x9 --remove     # as `sharefs undo` takes it back",
    .effect = Effect::reads,
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

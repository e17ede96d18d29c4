#include "fleet/grant.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "fleet/scratch.hpp"
#include "fleet/script.hpp"

#include <algorithm>
#include <array>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::array<const char*, 4> k_grants{"key", "hosts", "users", "mesh"};
constexpr std::array<const char*, 3> k_works{"check", "add", "remove"};

/// Returns a command line of ssh that logs in with the password of a file and in no other way. The password itself
/// never stands on a command line.
Result<Argv> ssh_with_password(sys::System& system, const Scratch& scratch, const std::string& file) {
  constexpr std::uint32_t k_others = 077;
  const auto entry = system.entry({.path = file, .follow = true});
  if (entry.kind != sys::EntryKind::file)
    return fail(ErrorCode::not_found, fmt::format("there is no file {}", file));
  if (entry.uid != system.identity().uid || (entry.mode & k_others) != 0)
    return fail(ErrorCode::permission, fmt::format("{} can be read by others", file),
                fmt::format("`chmod 600 {}`", shell_quote(file)));
  TRY_ASSIGN(const auto program, scratch.write("askpass", "#!/bin/sh\nexec cat " + single_quote(file) + "\n"));
  TRY(output_of(system, {"chmod", "0700", program}));
  Argv ssh{"env", "SSH_ASKPASS=" + program, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0", "ssh"};
  for (const auto* option : {"BatchMode=no", "StrictHostKeyChecking=yes", "NumberOfPasswordPrompts=1",
                             "PubkeyAuthentication=no", "PreferredAuthentications=password,keyboard-interactive"})
    ssh.insert(ssh.end(), {"-o", option});
  return ssh;
}

/// Returns "TYPE KEY" of the line of a public key.
std::string bare_key(const std::string& line) {
  const auto words = split_words(line);
  return words.size() < 2 ? std::string() : words[0] + " " + words[1];
}

/// Returns the comment behind the key, safe for a line on another machine.
std::string comment_of(const std::string& line) {
  auto words = split_words(line);
  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)));
  auto text = join(words, " ");
  std::erase_if(text, [](char one) { return one < ' ' || one > '~' || one == '\\'; });
  return text;
}

/// Returns the lines of this machine's known_hosts for these nodes, with plain names.
Result<std::string> collect_known_lines(sys::System& system, const std::vector<Reached>& nodes) {
  std::string lines;
  for (auto reached : nodes) {
    TRY_ASSIGN(const auto known, known_host_lines(system, reached));
    for (const auto& line : known) {
      const auto words = split_words(line);
      if (line.starts_with("@cert-authority"))
        lines += join(words, " ") + "\n";
      else if (words.size() >= 3 && !line.starts_with('@'))
        reached.keys.push_back({words[1], words[2], ""});
    }
    lines += known_hosts_lines({reached});
  }
  return lines; // duplicates do no harm: a node adds each line once
}

/// Makes the certificates of a node's host keys; returns "PATH CERTIFICATE" lines.
Result<std::string> make_certificates(sys::System& system, const Scratch& scratch, const std::string& ca,
                                      const Reached& reached, const std::vector<OwnHostKey>& keys) {
  std::string lines;
  for (const auto& key : keys) {
    const auto name = fmt::format("{}-{}", reached.node.name, &key - keys.data());
    TRY_ASSIGN(const auto file, scratch.write(name + ".pub", key.public_key + "\n"));
    TRY(output_of(system, {"ssh-keygen", "-q", "-s", ca, "-I", reached.node.name, "-h", "-n",
                           join(names_of(reached), ","), file}));
    TRY_ASSIGN(const auto certificate, scratch.read(name + "-cert.pub"));
    lines += key.path + " " + std::string(trim(certificate)) + "\n";
  }
  return lines;
}

/// Returns the standard input for the scripts of all nodes.
Result<std::string> input_of(const Trust& trust, const Granting& granting) {
  if (granting.grant == Grant::key)
    return bare_key(trust.public_key) + "\n";
  if (granting.grant == Grant::mesh)
    return collect_known_lines(trust.system, granting.mesh);
  if (granting.grant == Grant::users)
    return read_public_key(trust.system, granting.ca).map([](const auto& line) { return bare_key(line) + "\n"; });
  return fingerprint_of(trust.system, granting.ca + ".pub").map([](const auto& print) { return print + "\n"; });
}

/// Runs the request over any login that works for this user: keys and an agent first, then the password.
Result<std::vector<Outcome>> run_with_any_login(const Trust& trust, const std::vector<Reached>& nodes, Request request,
                                                const Scratch& scratch, const Granting& granting) {
  TRY_ASSIGN(auto outcomes, trust.run_on(nodes, request, "working on nodes"));
  const auto denied = nodes_in_state(State::denied, nodes, outcomes);
  if (denied.empty() || granting.password.empty())
    return outcomes;
  TRY_ASSIGN(request.asking.ssh, ssh_with_password(trust.system, scratch, granting.password));
  TRY_ASSIGN(auto again, trust.run_on(denied, request, "working on nodes"));
  replace(outcomes, std::move(again));
  return outcomes;
}

/// True if there is a certificate of the authority for the key that is still valid for these users, as `ssh-keygen -L`
/// prints it.
Result<bool> has_certificate(const Trust& trust, const std::string& ca, const std::vector<std::string>& users) {
  const auto file = trust.key + "-cert.pub";
  if (!trust.system.entry({.path = file, .follow = true}).exists())
    return false;
  TRY_ASSIGN(const auto authority, fingerprint_of(trust.system, ca + ".pub"));
  TRY_ASSIGN(const auto said,
             trust.system.run({.argv = {"ssh-keygen", "-L", "-f", file}, .environment = {{"TZ", "UTC"}}}));
  std::vector<std::string> words;
  for (const auto& line : split_lines(said.out))
    for (auto& word : split_words(line))
      words.push_back(std::move(word));
  const auto has = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  const auto to = std::ranges::find(words, "to");
  const auto until = to == words.end() ? to : std::next(to);
  const auto now =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(trust.system.now())));
  return has(authority) && std::ranges::all_of(users, has) && until != words.end() && *until > now;
}

} // namespace

const char* to_string(Grant grant) {
  return name_in(k_grants, grant);
}

std::optional<Grant> grant_from(std::string_view text) {
  for (std::size_t i = 0; i < k_grants.size(); ++i)
    if (k_grants[i] == text)
      return static_cast<Grant>(i);
  return std::nullopt;
}

std::string grant_script(Grant grant, GrantWork work, const std::string& mark, const std::string& comment) {
  return script_of({{"grant", to_string(grant)},
                    {"work", name_in(k_works, work)},
                    {"mark", "sharefs-" + mark},
                    {"comment", comment}},
                   k_trust_script);
}

std::vector<OwnHostKey> parse_own_host_keys(std::string_view out) {
  std::vector<OwnHostKey> keys;
  auto reports = parse_reports(out);
  for (const auto& value : reports["hostkey"])
    if (const auto words = split_words(value); words.size() == 3)
      keys.push_back({words[0], words[1] + " " + words[2]});
  return keys;
}

plan::RunTool grant_step(const Trust& trust, const std::vector<Reached>& nodes, const Granting& granting,
                         const Argv& options) {
  constexpr std::chrono::minutes k_longest{30};
  plan::RunTool tool;
  const auto program = trust.system.entry({.path = "/proc/self/exe"}).link_target;
  tool.argv = {program, "nodes", "grant", to_string(granting.grant), folded(nodes), "--mark", granting.mark};
  tool.argv.insert(tool.argv.end(), options.begin(), options.end());
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty())
      tool.argv.insert(tool.argv.end(), {option, value});
  };
  if (granting.grant == Grant::key)
    add("--key", trust.key);
  tool.undo = tool.argv;
  tool.undo.emplace_back("--remove");
  add("--ca", granting.ca);
  add("--of", folded(granting.mesh));
  add("--password-file", granting.password);
  add("--record", granting.mark);
  tool.deadline = k_longest;
  return tool;
}

std::string record_of_grant(const Trust& trust, const std::string& mark) {
  return join_path(trust.directory, "grant-" + mark);
}

Result<std::vector<Outcome>> take_record(const Trust& trust, const std::string& mark) {
  const auto directory = record_of_grant(trust, mark);
  TRY_ASSIGN(const auto outcomes, read_outcomes(trust.system, directory));
  if (const auto above = plan::PrivateDirectory::open(trust.system.files(), trust.directory); above && *above)
    (void)(*above)->remove(base_name(directory));
  std::vector<Outcome> found;
  for (const auto& [name, outcome] : outcomes)
    found.push_back(outcome);
  return found;
}

Result<std::vector<Outcome>> grant_on_nodes(const Trust& trust, const std::vector<Reached>& nodes,
                                            const Granting& granting, GrantWork work) {
  TRY_ASSIGN(const auto scratch, Scratch::make(trust.system.files(), trust.directory));
  Request request;
  request.asking.as_root = granting.grant != Grant::key;
  const auto comment = granting.grant == Grant::key ? comment_of(trust.public_key) : std::string();
  if (work != GrantWork::remove) {
    TRY_ASSIGN(const auto input, input_of(trust, granting));
    TRY_ASSIGN(request.asking.input, scratch.write("input", input));
  }
  if (work != GrantWork::add || granting.grant != Grant::hosts) {
    request.asking.script = grant_script(granting.grant, work, granting.mark, comment);
    return run_with_any_login(trust, nodes, request, scratch, granting);
  }
  // The certificates are made on this machine, from the host keys that the nodes report.
  std::map<std::string, std::string> certificates;
  request.asking.script = grant_script(Grant::hosts, GrantWork::check, granting.mark, comment);
  request.read = [&](const Node& node, const std::string& out, const Ended& ended) {
    auto outcome = script_outcome(node, out, ended);
    if (outcome.state != State::pending)
      return outcome;
    const auto reached = std::ranges::find(nodes, node.name, [](const Reached& one) { return one.node.name; });
    const auto lines = make_certificates(trust.system, scratch, granting.ca, *reached, parse_own_host_keys(out));
    if (lines)
      certificates[node.name] = *lines;
    else // a key that ssh-keygen cannot read is of this node alone
      outcome = {.node = node.name, .state = State::failed, .why = lines.error().message, .hint = lines.error().hint};
    return outcome;
  };
  TRY_ASSIGN(auto outcomes, run_with_any_login(trust, nodes, request, scratch, granting));
  const auto pending = nodes_in_state(State::pending, nodes, outcomes);
  if (pending.empty())
    return outcomes;
  request.read = nullptr;
  request.inputs = std::move(certificates);
  request.asking.script = grant_script(Grant::hosts, GrantWork::add, granting.mark, comment);
  TRY_ASSIGN(auto added, run_with_any_login(trust, pending, request, scratch, granting));
  replace(outcomes, std::move(added));
  return outcomes;
}

Result<plan::Plan> plan_certificate(const Trust& trust, const std::string& ca, const std::string& valid) {
  plan::Plan plan;
  std::vector<std::string> users;
  for (const auto& reached : trust.nodes)
    if (std::ranges::find(users, reached.ssh.user) == users.end())
      users.push_back(reached.ssh.user);
  TRY_ASSIGN(const bool has, has_certificate(trust, ca, users));
  if (has)
    return plan;
  TRY_ASSIGN(const auto scratch, Scratch::make(trust.system.files(), trust.directory));
  TRY_ASSIGN(const auto copy, scratch.write("key.pub", trust.public_key + "\n"));
  const auto identity = trust.system.identity();
  TRY(output_of(trust.system,
                {"ssh-keygen", "-q", "-s", ca, "-I", identity.user + "@" + identity.hostname, "-n", join(users, ","),
                 "-V", fmt::format("+{}s", parse_duration(valid).value_or(0) / 1000), copy}));
  TRY_ASSIGN(const auto certificate, scratch.read("key-cert.pub"));
  const auto path = trust.key + "-cert.pub";
  TRY_ASSIGN(const auto before, trust.system.files().read_if_exists(path));
  plan.add("", fmt::format("for {}, valid for {}", join(users, ","), valid),
           plan::File{path, before, certificate, 0644});
  return plan;
}

} // namespace sharefs::fleet

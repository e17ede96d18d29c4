// The part of `nodes trust --user-ca` on this machine: a certificate for the user's key.
#include "base/text.hpp"
#include "cli/commands/nodes/scratch.hpp"
#include "cli/commands/nodes/trust.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// A certificate of the authority for the key that is still valid for these users, by ssh-keygen's own words.
Result<bool> has_certificate(Context& context, const Trust& trust, const std::string& ca,
                             const std::vector<std::string>& users) {
  const auto file = trust.key + "-cert.pub";
  if (!context.system.entry({.path = file, .follow = true}).exists())
    return false;
  const auto authority = fingerprint_of(context, ca + ".pub");
  if (!authority)
    return fail(authority.error());
  sys::Command command;
  command.argv = {"ssh-keygen", "-L", "-f", file};
  command.environment["TZ"] = "UTC";
  const auto said = context.system.run(command);
  if (!said)
    return fail(said.error());
  std::vector<std::string> words;
  for (const auto& line : split_lines(said->out))
    for (auto& word : split_words(line))
      words.push_back(std::move(word));
  const auto has = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  auto until = std::ranges::find(words, "to");
  const auto now =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(context.system.now())));
  return has(*authority) && std::ranges::all_of(users, has) && until != words.end() && ++until != words.end() &&
         *until > now;
}

} // namespace

Result<plan::Plan> plan_certificate(Context& context, const Arguments& arguments, const Trust& trust,
                                    const std::string& ca) {
  plan::Plan plan;
  std::vector<std::string> users;
  for (const auto& reached : trust.nodes)
    if (std::ranges::find(users, reached.ssh.user) == users.end())
      users.push_back(reached.ssh.user);
  const auto has = has_certificate(context, trust, ca, users);
  if (!has || *has)
    return has ? Result<plan::Plan>(plan) : fail(has.error());
  const auto valid = arguments.duration("valid");
  const auto scratch = valid ? Scratch::make(context, "trust") : fail(valid.error());
  const auto copy = scratch ? scratch->write("key.pub", trust.public_key + "\n") : fail(scratch.error());
  if (!copy)
    return fail(copy.error());
  const auto identity = context.system.identity();
  const auto made = output_of(
      context, {"ssh-keygen", "-q", "-s", ca, "-I", identity.user + "@" + identity.hostname, "-n", join(users, ","),
                "-V", fmt::format("+{}s", std::chrono::duration_cast<std::chrono::seconds>(*valid).count()), *copy});
  const auto certificate = made ? scratch->read("key-cert.pub") : fail(made.error());
  const auto path = trust.key + "-cert.pub";
  const auto before = certificate ? context.system.files().read_if_exists(path) : fail(certificate.error());
  if (!before)
    return fail(before.error());
  plan.add("", fmt::format("for {}, valid for {}", join(users, ","), arguments.value("valid").value_or("")),
           plan::File{path, *before, *certificate, 0644});
  return plan;
}

} // namespace sharefs::cli

// sharefs nodes check: checks whether all machines of sharefs.yaml can be reached and are alike. nodes self and nodes
// lock are its parts on each machine.
#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/on_nodes.hpp"
#include "exports/host.hpp"
#include "fleet/facts.hpp"
#include "mounts/state.hpp"
#include "mounts/verify.hpp"
#include "sys/fs/lock_probe.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_largest_config = 16U << 20U;

std::vector<fleet::Account> accounts_of(sys::System& system, const std::vector<std::string>& names) {
  std::vector<fleet::Account> accounts;
  for (const auto& name : names) {
    const auto user = system.user(name);
    if (user)
      accounts.push_back({name, user->uid, user->gid});
    else if (user.error().code == ErrorCode::not_found)
      accounts.push_back({name});
  }
  return accounts;
}

/// Returns the groups to which `access:` of exports and shares gives directories.
std::vector<fleet::Account> groups_of(sys::System& system, const config::Config& config) {
  std::set<std::string> names;
  for (const auto& server : config.servers)
    for (const auto& one : server.exports)
      names.insert(one.access.group);
  for (const auto& mount : config.mounts)
    for (const auto& share : mount.shares)
      names.insert(share.access.group);
  names.erase("");
  std::vector<fleet::Account> groups;
  for (const auto& name : names) {
    const auto gid = exports::resolve_group(system, name);
    if (gid || gid.error().code == ErrorCode::not_found)
      groups.push_back({name, {}, gid ? std::optional<std::uint64_t>(*gid) : std::nullopt});
  }
  return groups;
}

Result<int> run_self(Context& context, const Arguments& /*arguments*/) {
  TRY_ASSIGN(const auto config, context.config_if_any());
  fleet::NodeFacts facts;
  const auto identity = context.system.identity();
  facts.hostname = identity.hostname;
  facts.boot_id = identity.boot_id;
  facts.version = SHAREFS_VERSION;
  const auto text = context.system.files().read(context.config_path(), k_largest_config);
  facts.config = text ? sys::sha256(*text) : "";
  if (config != nullptr && config->conda)
    facts.users = accounts_of(context.system, config->conda->users());
  if (config != nullptr)
    facts.groups = groups_of(context.system, *config);
  facts.clock_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(context.system.now().time_since_epoch()).count();
  context.envelope.fields["self"] = json_of(facts);
  context.console.print(text_of_json(json_of(facts), 2) + "\n");
  return k_exit_ok;
}

Result<int> run_lock(Context& context, const Arguments& arguments) {
  const auto& target = arguments.positional.at(0);
  const auto& name = arguments.positional.at(1);
  if (!are_random_letters(name))
    return fail(ErrorCode::usage, "NAME must be letters and digits");
  TRY_ASSIGN(const auto config, context.config());
  const auto points = mount_points(context.system, config);
  if (std::ranges::find(points, target, &mounts::MountPoint::target) == points.end())
    return fail(ErrorCode::usage, fmt::format("{} is no mount of sharefs.yaml", target));
  TRY_ASSIGN(const auto hold, arguments.duration("hold"));
  TRY_ASSIGN(const auto after, arguments.duration("after"));
  const auto directory = context.system.entry({.path = target});
  if (directory.error_number != 0)
    return fail(directory.error());
  const auto as = context.system.identity().uid == 0 ? mounts::likely_writer(directory) : std::nullopt;
  constexpr std::chrono::milliseconds k_most{30'000};
  const sys::LockTrial trial{join_path(target, ".sharefs-lock-" + name), std::min(hold, k_most),
                             std::min(after, k_most)};
  TRY_ASSIGN(const auto answer, sys::try_lock(trial, as));
  context.envelope.fields["lock"] = to_string(answer);
  context.console.message(to_string(answer));
  return k_exit_ok;
}

/// Returns for each mount of sharefs.yaml the nodes on which it is well. The server is not among them: a lock by
/// flock(2) on its own directory is not seen by clients.
Result<std::map<std::string, std::vector<std::string>>> find_sharing(Context& context,
                                                                     const std::vector<fleet::Node>& nodes) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto outcomes, ask_nodes(context, nodes, with_config(context, {"status"})));
  const auto points = mount_points(context.system, config);
  std::map<std::string, std::vector<std::string>> sharing;
  for (const auto& outcome : outcomes)
    for (const auto& mount : member(outcome.document, "mounts"))
      if (const auto target = text_in(mount, "target");
          text_in(mount, "state") == mounts::to_string(mounts::Health::healthy) &&
          std::ranges::find(points, target, &mounts::MountPoint::target) != points.end())
        sharing[target].push_back(outcome.node);
  return sharing;
}

/// Tries on the first two nodes that have a mount in common whether a lock of the first excludes the second.
Result<void> try_locks(Context& context, const std::vector<fleet::Node>& nodes, Diagnoses& found) {
  TRY_ASSIGN(const auto sharing, find_sharing(context, nodes));
  for (const auto& [target, names] : sharing) {
    if (names.size() < 2)
      continue;
    const auto &first = names[0], &second = names[1];
    std::vector<fleet::Node> two{*std::ranges::find(nodes, first, &fleet::Node::name),
                                 *std::ranges::find(nodes, second, &fleet::Node::name)};
    two[0].words = "--hold 5s";
    two[1].words = "--after 2s";
    TRY_ASSIGN(const auto outcomes,
               ask_nodes(context, two, with_config(context, {"nodes", "lock", target, random_letters(10)})));
    const auto answer = [&](std::size_t which) { return text_in(outcomes[which].document, "lock"); };
    const auto where = fmt::format("{},{}: {}", first, second, target);
    if (answer(0) == "held" && answer(1) == "taken")
      found.push_back({Severity::error, "SF239", where,
                       fmt::format("{} got a lock that {} held: programs on two machines destroy each other's files",
                                   second, first),
                       "mount it with `profile: safe`, or without `nolock`, on all machines", ""});
    else if (answer(0) != "held" || answer(1) != "refused")
      found.push_back({Severity::warning, "SF240", where,
                       fmt::format("whether locks work between the two could not be tried: {}",
                                   answer(0) != "held" ? outcomes[0].why
                                   : answer(1).empty() ? outcomes[1].why
                                                       : "one node does not see the file of the other"),
                       "`sharefs mount --all --verify` there says more", ""});
  }
  return {};
}

Result<int> run_check(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto nodes, chosen_nodes(context, named_nodes(arguments)));
  TRY_ASSIGN(auto outcomes, ask_nodes(context, nodes, with_config(context, {"nodes", "self"})));
  std::vector<fleet::NodeAnswer> answers;
  std::vector<fleet::Node> asked;
  for (auto& outcome : outcomes) {
    if (outcome.state != fleet::State::ok)
      continue;
    const auto facts = fleet::read_facts(member(outcome.document, "self"));
    if (facts) {
      answers.push_back({outcome.node, *facts, outcome.at_ms});
      asked.push_back(*std::ranges::find(nodes, outcome.node, &fleet::Node::name));
    } else {
      outcome.state = fleet::State::failed;
      outcome.why = "its facts cannot be read";
    }
  }
  auto found = fleet::compare(answers);
  TRY_ASSIGN(auto examined, asked.empty() ? Result<std::vector<fleet::Outcome>>(std::vector<fleet::Outcome>{})
                                          : ask_nodes(context, asked, with_config(context, {"doctor"})));
  fleet::replace(outcomes, std::move(examined));
  if (arguments.flag("locks"))
    TRY(try_locks(context, asked, found));
  show_outcomes(context, outcomes);
  context.report(found);
  const int code = fleet::exit_code_of(outcomes);
  if (code != k_exit_ok)
    return code;
  if (!found.empty())
    return count(found, Severity::error) + count(found, Severity::warning) > 0 ? k_exit_failed : k_exit_ok;
  context.console.message(nodes.size() == 1 ? "it is as it should be" : fmt::format("all {} are alike", nodes.size()));
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_nodes_self_command{
    .name = "nodes self",
    .summary = "Print the facts that `nodes check` compares",
    .description =
        "What `sharefs nodes check` asks each machine for, as JSON: version, the checksum of sharefs.yaml, the "
        "numbers of its users and groups, and its clock.",
    .example = "sharefs nodes self",
    .run = run_self,
};

extern const CommandSpec k_nodes_lock_command{
    .name = "nodes lock",
    .summary = "Lock a file of a mount, or try to: what `nodes check --locks` asks of two machines",
    .description = "One machine makes a file on a mount of sharefs.yaml, locks it and deletes it in the end (--hold), "
                   "while another one tries to lock it (--after).",
    .example = "sharefs nodes lock /data/share trial1 --hold 10s    # on one machine\n"
               "sharefs nodes lock /data/share trial1               # on another one: refused, as it should be",
    .positional = {.name = "MOUNTPOINT NAME", .help = "where, and a name for the file", .min = 2, .max = 2},
    .options = {{.names = "--hold", .value = "TIME", .help = "make it and keep it locked so long", .fallback = "0s"},
                {.names = "--after", .value = "TIME", .help = "when to try", .fallback = "0s"}},
    .run = run_lock,
};

extern const CommandSpec k_nodes_check_command{
    .name = "nodes check",
    .summary = "Check that the machines can be reached, and are alike",
    .description =
        "Asks every machine what it says of itself, and compares: can it be reached, is its host key known, "
        "may this user be root there (sudo -n), the same version of sharefs, the same sharefs.yaml, the same "
        "numbers of users and groups, and clocks. Then `sharefs doctor` looks at each: exports, mounts, boot, links, "
        "caches. "
        "What is equal stands in one row, and each trouble comes with its cure.",
    .example = "sharefs nodes check\n"
               "sharefs nodes check 'gpu[01-16]'",
    .positional = {.name = "NODES", .help = "names, ranges and groups; without them all", .max = 1},
    .options = {{.names = "--locks", .help = "try, on each mount, whether two machines exclude each other by locks"}},
    .run = run_check,
};

} // namespace sharefs::cli

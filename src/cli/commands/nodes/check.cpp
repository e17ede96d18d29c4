// sharefs nodes check: are all machines of sharefs.yaml there, and alike? And what each of them says of itself for it.
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/count.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_view.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/facts.hpp"
#include "mounts/state.hpp"
#include "sys/fs/sha256.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_config_limit = 16U << 20U;

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

std::vector<fleet::MountFact> mounts_of(Context& context, const config::Config* config) {
  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, config);
  const auto seen = mounts::probe(context.system, request);
  std::vector<fleet::MountFact> facts;
  for (const auto& state : seen ? seen->states : std::vector<mounts::MountState>{})
    facts.push_back({state.point.target, mounts::to_string(state.health), state.right()});
  return facts;
}

/// What a user of this machine would be told: root may write everywhere.
std::string trouble_of_caches(Context& context, const config::Config& config) {
  auto choices = choices_of(context);
  if (!choices)
    return choices.error().message;
  const auto identity = context.system.identity();
  const auto users = config.conda ? config.conda->users() : std::vector<std::string>{};
  if (identity.uid == 0 && !users.empty())
    if (auto user = context.system.user(users.front()); user && user->uid != 0)
      choices->local.as = *user;
  return cachefix::find_local_root(context.system, choices->local, identity).problem;
}

Result<int> run_self(Context& context, const Arguments& /*arguments*/) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  fleet::NodeFacts facts;
  facts.hostname = context.system.identity().hostname;
  facts.version = SHAREFS_VERSION;
  const auto text = context.system.files().read(context.config_path(), k_config_limit);
  facts.config = text ? sys::sha256(*text) : "";
  if (*config != nullptr) {
    if ((*config)->conda)
      facts.users = accounts_of(context.system, (*config)->conda->users());
    facts.mounts = mounts_of(context, *config);
    facts.caches = trouble_of_caches(context, **config);
  }
  facts.clock_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(context.system.now().time_since_epoch()).count();
  context.envelope.fields["self"] = json_of(facts);
  if (!context.flags.json)
    context.console.out() << json_of(facts).dump(2) << "\n";
  return k_exit_ok;
}

Result<int> run_check(Context& context, const Arguments& arguments) {
  const auto pattern = arguments.positional.empty() ? std::string(fleet::k_all) : arguments.positional.front();
  const auto nodes = chosen_nodes(context, pattern);
  if (!nodes)
    return fail(nodes.error());
  Argv words{"nodes", "self"};
  if (!context.flags.config.empty())
    words.insert(words.end(), {"--config", context.config_path()});
  auto outcomes = ask_nodes(context, *nodes, words, true);
  if (!outcomes)
    return fail(outcomes.error());
  std::vector<fleet::Told> told;
  for (auto& outcome : *outcomes) {
    if (outcome.state != fleet::State::ok)
      continue;
    const auto facts = outcome.document.contains("self") ? fleet::facts_from(outcome.document["self"]) : std::nullopt;
    if (facts)
      told.push_back({outcome.node, *facts, outcome.at_ms});
  }
  const auto found = fleet::compare(told);
  show_outcomes(context, *outcomes);
  context.report(found);
  const int code = fleet::exit_code_of(*outcomes);
  if (code != k_exit_ok)
    return code;
  if (!found.empty())
    return count(found, Severity::error) + count(found, Severity::warning) > 0 ? k_exit_failed : k_exit_ok;
  context.console.message(nodes->size() == 1 ? "it is as it should be"
                                             : fmt::format("all {} are alike", nodes->size()));
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_nodes_self_command{
    .name = "nodes self",
    .summary = "Say what other machines want to know of this one",
    .description =
        "What `sharefs nodes check` asks each machine for, as JSON: version, the checksum of sharefs.yaml, the "
        "numbers of its users, its clock, its mounts and where its caches lie.",
    .example = "sharefs nodes self",
    .effect = Effect::reads,
    .run = run_self,
};

extern const CommandSpec k_nodes_check_command{
    .name = "nodes check",
    .summary = "Check that the machines can be reached, and are alike",
    .description =
        "Asks every machine what it says of itself, and compares: can it be reached, is its host key known, "
        "may this user be root there (sudo -n), the same version of sharefs, the same sharefs.yaml, the same "
        "numbers of users, clocks, mounts and the directory of caches. What is equal stands in one row, and "
        "each trouble comes with its cure.",
    .example = "sharefs nodes check\n"
               "sharefs nodes check 'gpu[01-16]'",
    .effect = Effect::reads,
    .positional = {.name = "NODES", .help = "names, ranges and groups; without them all", .max = 1},
    .run = run_check,
};

} // namespace sharefs::cli

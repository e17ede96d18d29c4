// sharefs conda link, sharefs conda unlink: links from the homes to the shared environments.
#include "cli/commands/conda/link.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

using conda::HomeSummary;
using conda::LinkRequest;
using Verb = LinkRequest::Verb;

Result<std::vector<std::string>> environments_of(const config::Conda& conda, const Arguments& arguments, Verb verb) {
  const auto& names = arguments.positional;
  const bool all = arguments.flag("all");
  if (all && !names.empty())
    return fail(ErrorCode::usage, "`--all` and names of environments exclude each other", "give one or the other");
  if (!all && names.empty())
    return fail(ErrorCode::usage, "no environment was named",
                conda.envs.empty() ? "give --all, or names" : "give --all, or some of: " + join(conda.names(), ", "));
  if (all && conda.envs.empty())
    return fail(ErrorCode::config, conda.origin.text() + ": `conda.envs` names no environment",
                "list the environments of the store that every home gets: `envs: [NAME, ...]`");
  if (all)
    return conda.names();
  for (const auto& name : names) {
    TRY(check_environment_name(name));
    if (verb == Verb::unlink || contains(conda.names(), name))
      continue;
    return fail(ErrorCode::usage, fmt::format("environment `{}` is not in `conda.envs`", name),
                did_you_mean_hint(name, conda.names(),
                                  "add it there (" + conda.origin.text() + "), so that all machines agree"));
  }
  return names;
}

/// Returns the places of `conda.homes` that the request names, each with its users.
Result<std::vector<conda::Homes>> chosen_homes(const config::Conda& conda, const Arguments& arguments,
                                               const sys::Identity& self) {
  const auto chosen = arguments.list("user");
  const auto known = conda.users();
  for (const auto& user : chosen) {
    if (!contains(known, user))
      return fail(ErrorCode::usage, fmt::format("user `{}` is not in `conda.homes`", user),
                  name_hint(user, known, "it names"));
    if (self.uid != 0 && user != self.user)
      return fail(ErrorCode::permission, fmt::format("only root may work in the home of `{}`", user), "run as root");
  }
  std::vector<conda::Homes> homes;
  bool own = self.uid == 0 || contains(chosen, self.user);
  for (const auto& place : conda.homes) {
    const bool for_all = place.conda.starts_with('/');
    conda::Homes wanted{place.users, place.conda};
    if (!chosen.empty())
      std::erase_if(wanted.users, [&](const std::string& user) { return !contains(chosen, user); });
    if (for_all && wanted.users.size() < place.users.size() && !wanted.users.empty())
      return fail(ErrorCode::usage,
                  fmt::format("{} is one installation for several users: `--user` has no meaning", place.conda));
    // A user who has a place of their own does not work in the one of others.
    if (self.uid != 0 && for_all && contains(known, self.user) && !contains(place.users, self.user))
      continue;
    if (wanted.users.empty() && (!for_all || !chosen.empty()))
      continue;
    own = own || for_all || contains(wanted.users, self.user);
    homes.push_back(std::move(wanted));
  }
  if (!own)
    return fail(ErrorCode::permission,
                fmt::format("user `{}` is not in `conda.homes`, and only root may work in other homes", self.user),
                "run as root, or add the user there");
  if (homes.empty())
    return fail(ErrorCode::config, "`conda.homes` names no user",
                "list the users in whose homes the links are to be made");
  return homes;
}

/// Checks the names given to unlink: a name that sharefs.yaml does not have is allowed if somebody has such a link.
Result<void> check_unlinked_names(const config::Conda& conda, const conda::LinkState& state,
                                  const LinkRequest& request) {
  for (const auto& name : request.environments) {
    const auto is_linked = [&](const conda::HomeState& home) {
      return std::ranges::any_of(home.environments, [&](const conda::Place& place) {
        return place.environment == name && (place.entry.exists() || !place.backup.empty());
      });
    };
    if (!contains(conda.names(), name) && std::ranges::none_of(state.homes, is_linked))
      return fail(ErrorCode::usage, fmt::format("environment `{}` is neither in `conda.envs` nor in any home", name),
                  name_hint(name, conda.names(), "it names"));
  }
  return {};
}

std::string nothing_to_do(std::size_t right, const LinkRequest& request) {
  if (right == 0)
    return "nothing could be done";
  const auto& first = request.homes.front().conda;
  const auto where = request.homes.size() == 1 && first.starts_with('/') ? "`" + first + "`" : count_of(right, "home");
  return request.verb == Verb::link ? fmt::format("the links in {} are as they should be", where)
                                    : fmt::format("no link to the store is left in {}", where);
}

/// Returns the exit code of the command. It combines the steps with the homes that had no steps: homes that are right,
/// and homes that are blocked or lack an environment that is missing in the store.
int exit_code(const Executed& executed, std::map<HomeSummary, std::size_t> homes, bool some_left_out) {
  const auto right = homes[HomeSummary::right];
  if (executed.stopped() || executed.exit_code == k_exit_partly)
    return executed.exit_code;
  return executed.exit_code == k_exit_failed ? exit_code_for(right, 1)
                                             : exit_code_for(right + homes[HomeSummary::pending],
                                                             homes[HomeSummary::blocked] + (some_left_out ? 1 : 0));
}

/// Reads the homes, reports what stands in the way, executes the plan. Exit code 4 if some homes were done and others
/// could not be.
Result<int> change_conda_links(Context& context, const Arguments& arguments, Verb verb) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "the links in homes belong to a running system: --root is not possible here");
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(auto request, conda_link_request(*config, arguments, context.system.identity(), verb));
  if (verb == Verb::link)
    request.shares = shares_of(context.system, *config, request.store);
  TRY_ASSIGN(const auto state, conda::probe(context.system, request));
  if (state.store)
    report_reader(context, request.store, state.store->by);
  context.report(diagnose(state, request));
  if (verb == Verb::unlink)
    TRY(check_unlinked_names(*config->conda, state, request));

  context.envelope.fields["store"] = to_utf8(request.store);
  if (state.store && !is_usable(*state.store))
    return k_exit_failed;
  const bool some_left_out = state.store && has_errors(diagnose_store(*state.store));
  context.envelope.fields["homes"] = homes_json(state, request);
  std::map<HomeSummary, std::size_t> homes;
  for (const auto& home : state.homes)
    ++homes[summarize(home, request)];
  return execute(context, conda::plan(state, request), nothing_to_do(homes[HomeSummary::right], request))
      .map([&](const Executed& executed) { return exit_code(executed, homes, some_left_out); });
}

} // namespace

Json homes_json(const conda::LinkState& state, const LinkRequest& request) {
  auto homes = Json::array();
  for (const auto& home : state.homes) {
    auto links = Json::array();
    for (const auto& place : home.environments)
      links.push_back({{"path", to_utf8(place.entry.path)},
                       {"target", to_utf8(place.target)},
                       {"standing", conda::to_string(conda::state_of(place, request.store))}});
    homes.push_back({{"name", home.name},
                     {"conda", to_utf8(home.conda)},
                     {"state", to_string(summarize(home, request))},
                     {"links", std::move(links)}});
  }
  return homes;
}

bool has_links(const config::Conda& conda) {
  return !conda.envs.empty() && !conda.users().empty();
}

Result<LinkRequest> conda_link_request(const config::Config& config, const Arguments& arguments,
                                       const sys::Identity& self, Verb verb) {
  if (!config.conda)
    return fail(ErrorCode::config, config.file + " has no section `conda:`",
                "add one: `conda: {store: /PATH/ON/SHARE, envs: [NAME], homes: {users: [NAME]}}`");
  const auto& conda = *config.conda;
  LinkRequest request;
  request.verb = verb;
  request.store = conda.store;
  request.all = arguments.flag("all");
  request.backup = arguments.flag("backup");
  TRY_ASSIGN(request.homes, chosen_homes(conda, arguments, self));
  TRY_ASSIGN(request.environments, environments_of(conda, arguments, verb));
  return request;
}

extern const CommandSpec k_conda_link_command{
    .name = "conda link",
    .summary = "Link shared conda environments into the homes",
    .description =
        "Makes ~/CONDA/envs/ENV a link to STORE/ENV in each home of `conda.homes`, as the user whose home it is. What "
        "is right is left alone, a link that leads nowhere or to another place of the store is replaced, and anything "
        "else in the way is reported. Homes that cannot be reached do not hold up the others (exit code 4).",
    .example = "sharefs conda link --all            # every environment of `conda.envs` in every home\n"
               "sharefs conda link llm_train --user alice --backup\n"
               "                                    # her own llm_train is kept under another name",
    .changes = true,
    .positional = {.name = "ENV", .help = "environments of `conda.envs`"},
    .options = {{.names = "--all", .help = "all environments of `conda.envs`"},
                {.names = "--backup",
                 .help = "rename what is in the way to NAME.sharefs-backup-DATE-TIME; `conda unlink` puts it back"},
                {.names = "--user", .value = "USER", .help = "only this user's home", .repeat = true}},
    .on_nodes = true,
    .run = [](Context& context,
              const Arguments& arguments) { return change_conda_links(context, arguments, Verb::link); },
};

extern const CommandSpec k_conda_unlink_command{
    .name = "conda unlink",
    .summary = "Remove the links to shared conda environments",
    .description =
        "Removes exactly the links that lead to STORE/ENV (with --all also one of the whole `envs` directory), and "
        "puts back in its place what `conda link --backup` has moved aside, or the original that `conda share` has "
        "kept. Other links and directories are left alone and named. The store is not touched, so this works while its "
        "server is down.",
    .example = "sharefs conda unlink --all          # in every home\n"
               "sharefs conda unlink llm_train --user alice",
    .changes = true,
    .positional = {.name = "ENV", .help = "environments to unlink"},
    .options = {{.names = "--all", .help = "all environments of `conda.envs`, and a link of the whole directory"},
                {.names = "--user", .value = "USER", .help = "only this user's home", .repeat = true}},
    .on_nodes = true,
    .run = [](Context& context,
              const Arguments& arguments) { return change_conda_links(context, arguments, Verb::unlink); },
};

} // namespace sharefs::cli

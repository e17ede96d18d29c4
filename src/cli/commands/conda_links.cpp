#include "cli/commands/conda_links.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/export_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using conda::HomeSummary;
using conda::LinkRequest;
using conda::LinkStyle;
using Verb = LinkRequest::Verb;

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

/// What a word that is not in a list of sharefs.yaml may have meant.
std::string hint_for(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t k_few = 10;
  auto hint = did_you_mean_hint(word, known);
  return hint.empty() && !known.empty() && known.size() <= k_few ? "it names: " + join(known, ", ") : hint;
}

std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config) {
  std::vector<conda::Share> shares;
  for (const auto& mount : config.mounts) {
    config::Config one;
    one.servers.push_back({mount.server, mount.address, {}, {}});
    const bool above = is_under(config.conda->store, mount.at);
    shares.push_back({mount.name, mount.at, above && !find_own_servers(system, one).servers.empty()});
  }
  return shares;
}

Result<std::vector<std::string>> environments_of(const config::Conda& conda, const Arguments& arguments, Verb verb) {
  const auto& names = arguments.positional;
  const bool all = arguments.flag("all");
  if (all && !names.empty())
    return fail(ErrorCode::usage, "`--all` and names of environments exclude each other", "give one or the other");
  if (!all && names.empty())
    return fail(ErrorCode::usage, "no environment was named",
                conda.envs.empty() ? "give --all, or names" : "give --all, or some of: " + join(conda.envs, ", "));
  if (all && conda.envs.empty() && conda.link == "each")
    return fail(ErrorCode::config, conda.origin.text() + ": `conda.envs` names no environment",
                "list the environments of the store that every home gets: `envs: [NAME, ...]`");
  if (all)
    return conda.envs;
  if (conda.link == "whole" && verb == Verb::link)
    return fail(ErrorCode::usage, "with `link: whole` all environments are linked at once", "give --all");
  if (verb == Verb::link)
    for (const auto& name : names)
      if (!contains(conda.envs, name)) {
        auto hint = did_you_mean_hint(name, conda.envs);
        return fail(ErrorCode::usage, fmt::format("environment `{}` is not in `conda.envs`", name),
                    hint.empty() ? "add it there (" + conda.origin.text() + "), so that all machines agree"
                                 : std::move(hint));
      }
  return names;
}

Result<std::vector<std::string>> users_of(const config::Conda& conda, const Arguments& arguments,
                                          const sys::Identity& self) {
  auto users = arguments.list("user");
  for (const auto& user : users) {
    if (!contains(conda.homes.users, user))
      return fail(ErrorCode::usage, fmt::format("user `{}` is not in `conda.homes.users`", user),
                  hint_for(user, conda.homes.users));
    if (self.uid != 0 && user != self.user)
      return fail(ErrorCode::permission, fmt::format("only root may work in the home of `{}`", user), "run as root");
  }
  if (!users.empty() && conda.homes.conda.starts_with('/'))
    return fail(ErrorCode::usage, "`conda.homes.conda` is one installation for all users: `--user` has no meaning");
  if (users.empty())
    users = conda.homes.users;
  if (self.uid != 0 && !conda.homes.conda.starts_with('/') && !contains(users, self.user))
    return fail(
        ErrorCode::permission,
        fmt::format("user `{}` is not in `conda.homes.users`, and only root may work in other homes", self.user),
        "run as root, or add the user there");
  return users;
}

/// A name that sharefs.yaml does not know is fine for unlink, if somebody has such a link.
Result<void> check_unlinked_names(const config::Conda& conda, const conda::LinkState& state,
                                  const LinkRequest& request) {
  for (const auto& name : request.environments) {
    const auto is_linked = [&](const conda::HomeState& home) {
      return std::ranges::any_of(home.environments, [&](const conda::Place& place) {
        return place.environment == name && (place.entry.exists() || !place.backup.empty());
      });
    };
    if (!contains(conda.envs, name) && std::ranges::none_of(state.homes, is_linked))
      return fail(ErrorCode::usage, fmt::format("environment `{}` is neither in `conda.envs` nor in any home", name),
                  hint_for(name, conda.envs));
  }
  return {};
}

nlohmann::ordered_json to_json(const conda::Place& place, const LinkRequest& request) {
  return {{"path", to_utf8(place.entry.path)},
          {"target", to_utf8(place.target)},
          {"standing", conda::to_string(conda::standing(place, request.store))}};
}

nlohmann::ordered_json to_json(const conda::LinkState& state, const LinkRequest& request) {
  auto homes = nlohmann::ordered_json::array();
  for (const auto& home : state.homes) {
    auto links = nlohmann::ordered_json::array();
    if (home.problem == conda::HomeProblem::none && request.style == LinkStyle::whole)
      links.push_back(to_json(home.envs, request));
    for (const auto& place : home.environments)
      links.push_back(to_json(place, request));
    homes.push_back({{"name", home.name},
                     {"conda", to_utf8(home.conda)},
                     {"state", to_string(summarize(home, request))},
                     {"links", std::move(links)}});
  }
  return homes;
}

struct Counts {
  std::size_t right = 0, pending = 0, blocked = 0;
};

Counts count(const conda::LinkState& state, const LinkRequest& request) {
  Counts counts;
  for (const auto& home : state.homes) {
    const auto summary = summarize(home, request);
    counts.right += summary == HomeSummary::right ? 1U : 0U;
    counts.pending += summary == HomeSummary::pending ? 1U : 0U;
    counts.blocked += summary == HomeSummary::blocked ? 1U : 0U;
  }
  return counts;
}

std::string nothing_to_do(const Counts& counts, const LinkRequest& request) {
  if (counts.right == 0)
    return "nothing could be done";
  const auto where = request.conda.starts_with('/') ? "`" + request.conda + "`" : count_of(counts.right, "home");
  return request.verb == Verb::link ? fmt::format("the links in {} are as they should be", where)
                                    : fmt::format("no link to the store is left in {}", where);
}

/// The exit code of the steps, seen together with the homes that had none: those that are right, and those in which
/// nothing could be done.
int exit_code(int executed, const Counts& counts) {
  if (executed == k_exit_failed && counts.right > 0)
    return k_exit_partly;
  if (executed != k_exit_ok || counts.blocked == 0)
    return executed;
  return counts.right + counts.pending == 0 ? k_exit_failed : k_exit_partly;
}

} // namespace

Result<LinkRequest> conda_link_request(const config::Config& config, const Arguments& arguments,
                                       const sys::Identity& self, Verb verb) {
  if (!config.conda)
    return fail(ErrorCode::config, config.file + " has no section `conda:`",
                "add one: `conda: {store: /PATH/ON/SHARE, envs: [NAME], homes: {users: [NAME]}}`");
  const auto& conda = *config.conda;
  LinkRequest request;
  request.verb = verb;
  request.style = conda.link == "whole" ? LinkStyle::whole : LinkStyle::each;
  request.store = conda.store;
  request.all = arguments.flag("all");
  request.backup = arguments.flag("backup");
  request.conda = conda.homes.conda;
  auto users = users_of(conda, arguments, self);
  if (!users)
    return fail(users.error());
  request.users = std::move(*users);
  auto environments = environments_of(conda, arguments, verb);
  if (!environments)
    return fail(environments.error());
  request.environments = std::move(*environments);
  if (auto sound = check(request); !sound)
    return fail(sound.error());
  return request;
}

Result<int> change_conda_links(Context& context, const Arguments& arguments, Verb verb) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "the links in homes belong to a running system: --root is not possible here");
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  auto request = conda_link_request(**config, arguments, context.system.identity(), verb);
  if (!request)
    return fail(request.error());
  if (verb == Verb::link)
    request->shares = shares_of(context.system, **config);
  const auto state = conda::probe(context.system, *request);
  if (!state)
    return fail(state.error());
  context.report(diagnose(*state, *request));
  if (verb == Verb::unlink)
    if (auto known = check_unlinked_names(*(*config)->conda, *state, *request); !known)
      return fail(known.error());

  context.envelope.fields["store"] = to_utf8(request->store);
  if (state->store && has_errors(diagnose_store(*state->store)))
    return k_exit_failed;
  context.envelope.fields["homes"] = to_json(*state, *request);
  const auto counts = count(*state, *request);
  const auto executed = execute(context, conda::plan(*state, *request), nothing_to_do(counts, *request));
  if (!executed)
    return fail(executed.error());
  return exit_code(executed->exit_code, counts);
}

} // namespace sharefs::cli

#include "cli/commands/conda_names.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/export_support.hpp"
#include "config/values.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

Result<const config::Conda*> conda_section(Context& context, const std::string& hint) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  if (!(*config)->conda)
    return fail(ErrorCode::config, (*config)->file + " has no section `conda:`", hint);
  return &*(*config)->conda;
}

std::vector<conda::Homes> homes_of(const config::Conda& conda, const sys::Identity& self) {
  std::vector<conda::Homes> homes;
  for (const auto& place : conda.homes)
    if (self.uid == 0)
      homes.push_back({place.users, place.conda});
    else if (std::ranges::find(place.users, self.user) != place.users.end())
      return {{{self.user}, place.conda}};
  if (self.uid != 0) // whom sharefs.yaml does not name
    homes = {{{self.user}, conda.homes.empty() ? config::Homes{}.conda : conda.homes.front().conda}};
  return homes;
}

Result<void> check_environment_name(const std::string& name) {
  const auto key = std::ranges::find(config::keys(), "conda.envs[].name", &config::Key::name);
  const auto complaint = config::complaint_about(*key, name);
  return complaint
             ? fail(ErrorCode::usage, "environment `" + shell_quote(name) + "` " + complaint->what, complaint->hint)
             : Result<void>{};
}

Result<std::string> environment_path(Context& context, const std::string& word) {
  if (word.find('/') != std::string::npos || word == "." || word == "..")
    return normalize_path(word, context.host.working_directory);
  if (auto sound = check_environment_name(word); !sound)
    return fail(sound.error());
  return conda_section(context, fmt::format("name the environment by its path: `./{}`", word))
      .map([&](const config::Conda* conda) { return join_path(conda->store, word); });
}

std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config, const std::string& path) {
  std::vector<conda::Share> shares;
  for (const auto& mount : config.mounts) {
    config::Config one;
    one.servers.push_back({mount.server, mount.address, {}, {}});
    const bool above = is_under(path, mount.at);
    shares.push_back({mount.name, mount.at, above && !find_own_servers(system, one).servers.empty()});
  }
  return shares;
}

Result<void> check_share(Context& context, const std::string& path) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  if (*config == nullptr ||
      std::ranges::none_of((*config)->mounts, [&](const auto& mount) { return is_under(path, mount.at); }))
    return {};
  const auto mounts = context.system.mounts();
  if (!mounts)
    return fail(mounts.error());
  std::vector<conda::Share> shares; // who serves them takes longer to find out
  for (const auto& mount : (*config)->mounts)
    shares.push_back({mount.name, mount.at, false});
  const auto* share = conda::share_of(path, shares);
  if (mounts->at(share->at) != nullptr)
    return {};
  shares = shares_of(context.system, **config, path);
  share = conda::share_of(path, shares);
  if (share->served_here)
    return {};
  return fail(ErrorCode::failed,
              fmt::format("{}: share `{}` that holds it is not mounted on `{}` [SF301]", path, share->name, share->at),
              "run `sharefs mount " + shell_quote(share->name) + "`");
}

} // namespace sharefs::cli

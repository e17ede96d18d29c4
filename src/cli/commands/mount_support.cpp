#include "cli/commands/mount_support.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/exit_code.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

bool is_good(plan::Outcome outcome) {
  return outcome == plan::Outcome::done || outcome == plan::Outcome::unchanged;
}

/// Targets of the steps with this action; a target counts only if all its steps are good.
template <class ActionType> std::set<std::string> targets_by(const plan::Plan& plan, const plan::Report& report) {
  std::set<std::string> good, bad;
  for (const auto& result : report.results) {
    if (result.step >= plan.steps.size())
      continue;
    if (const auto* action = std::get_if<ActionType>(&plan.steps[result.step].action))
      (is_good(result.outcome) ? good : bad).insert(action->target);
  }
  for (const auto& target : bad)
    good.erase(target);
  return good;
}

} // namespace

std::vector<mounts::MountRequest> mount_requests(const config::Config& config) {
  std::vector<mounts::MountRequest> requests;
  for (const auto& mount : config.mounts)
    requests.push_back({.name = mount.name,
                        .server = mount.address,
                        .path = mount.path,
                        .target = normalize_path(mount.at),
                        .profile = mount.profile,
                        .options = mount.options,
                        .boot = mount.boot == "auto",
                        .origin = mount.origin.text()});
  return requests;
}

Result<std::vector<mounts::MountRequest>> select_mounts(Context& context, const config::Config* config,
                                                        const Arguments& arguments, bool unknown_paths) {
  const auto all = config == nullptr ? std::vector<mounts::MountRequest>() : mount_requests(*config);
  const auto& words = arguments.positional;
  std::vector<std::string> names;
  for (const auto& request : all)
    names.push_back(request.name);
  if (arguments.flag("all") && !words.empty())
    return fail(ErrorCode::usage, "both names and --all were given", "give one of them");
  if (arguments.flag("all"))
    return all;
  if (words.empty())
    return fail(ErrorCode::usage, "no mount was named",
                names.empty() ? (unknown_paths ? "name a mount point" : "sharefs.yaml has no `mounts:`")
                              : fmt::format("name some of {}, or give --all", join(names, ", ")));
  std::vector<mounts::MountRequest> selected;
  for (const auto& word : words) {
    const auto path = normalize_path(word, context.host.working_directory);
    const auto found = std::find_if(all.begin(), all.end(), [&](const mounts::MountRequest& request) {
      return request.name == word || (word.find('/') != std::string::npos && request.target == path);
    });
    if (found != all.end()) {
      if (std::find(selected.begin(), selected.end(), *found) == selected.end())
        selected.push_back(*found);
      continue;
    }
    if (!unknown_paths || word.find('/') == std::string::npos) {
      auto hint = did_you_mean_hint(word, names);
      if (hint.empty())
        hint = names.empty() ? "there are no `mounts:` in sharefs.yaml" : "the mounts are " + join(names, ", ");
      return fail(ErrorCode::usage, fmt::format("there is no mount `{}`", word), hint);
    }
    mounts::MountRequest request;
    request.target = path;
    selected.push_back(std::move(request));
  }
  return selected;
}

Result<void> require_root(const Context& context) {
  if (context.flags.dry_run || context.flags.check || context.system.identity().uid == 0)
    return {};
  return fail(ErrorCode::permission, "only root can mount and unmount", "run `sudo " + shell_join(context.argv) + "`");
}

Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments) {
  auto timeout = arguments.duration("timeout");
  if (timeout && timeout->count() <= 0)
    return fail(ErrorCode::usage, "--timeout must be more than nothing", "for example --timeout 5s");
  return timeout;
}

std::set<std::string> mounted_by(const plan::Plan& plan, const plan::Report& report) {
  return targets_by<plan::Mount>(plan, report);
}

std::set<std::string> unmounted_by(const plan::Plan& plan, const plan::Report& report) {
  return targets_by<plan::Unmount>(plan, report);
}

int exit_code_for(std::size_t good, std::size_t bad) {
  if (bad == 0)
    return k_exit_ok;
  return good == 0 ? k_exit_failed : k_exit_partly;
}

nlohmann::ordered_json to_json(const mounts::MountState& state) {
  nlohmann::ordered_json json;
  const auto text = [](const std::string& bytes) { return to_utf8(bytes); };
  if (state.point.name.empty())
    json["name"] = nullptr;
  else
    json["name"] = text(state.point.name);
  json["source"] = text(state.mount && state.mounted() ? state.mount->source
                                                       : mounts::format_source(state.point.server, state.point.path));
  json["target"] = text(state.point.target);
  json["state"] = mounts::to_string(state.health);
  json["mounted"] = state.mounted();
  const bool known = state.probe && state.probe->size_bytes > 0;
  json["latency_us"] = state.probe && known ? nlohmann::ordered_json(state.probe->latency.count()) : nullptr;
  json["size_bytes"] = known ? nlohmann::ordered_json(state.probe->size_bytes) : nullptr;
  json["used_bytes"] = known ? nlohmann::ordered_json(state.probe->size_bytes - state.probe->free_bytes) : nullptr;
  json["options"] = text(state.mount ? state.mount->super_options : "");
  json["differences"] = nlohmann::ordered_json::array();
  for (const auto& one : state.differences)
    json["differences"].push_back({{"asked", text(one.asked)}, {"actual", text(one.actual)}, {"fault", one.fault}});
  json["detail"] = text(state.detail);
  return json;
}

} // namespace sharefs::cli

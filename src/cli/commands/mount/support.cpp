#include "cli/commands/mount/support.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/stage/stage.hpp"
#include "exports/system_directory.hpp"
#include "mounts/verify.hpp"
#include "plan/check_action.hpp"
#include "sys/identity/identity.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

bool is_of_image(const plan::Action& action) {
  const auto* mount = std::get_if<plan::Mount>(&action);
  const auto* unmount = std::get_if<plan::Unmount>(&action);
  return (mount != nullptr && mount->fs_type == sys::k_image) ||
         (unmount != nullptr && unmount->fs_type == sys::k_image);
}

/// Returns the targets of the steps with this action; a target counts only if all its steps are good.
template <class ActionType> std::set<std::string> targets_by(const plan::Plan& plan, const plan::Report& report) {
  std::set<std::string> good, bad;
  for (const auto& result : report.results) {
    if (result.step >= plan.steps.size() || is_of_image(plan.steps[result.step].action))
      continue;
    if (const auto* action = std::get_if<ActionType>(&plan.steps[result.step].action))
      (is_good(result.outcome) ? good : bad).insert(action->target);
  }
  for (const auto& target : bad)
    good.erase(target);
  return good;
}

/// Reads the words of the key `mounts.*.boot`.
mounts::BootWay boot_way_of(const std::string& word) {
  using enum mounts::BootWay;
  return word == "auto"        ? automatic
         : word == "unit"      ? unit
         : word == "automount" ? automount
         : word == "fstab"     ? fstab
         : word == "rc.local"  ? rc_local
                               : none;
}

} // namespace

std::vector<mounts::MountPoint> mount_points(sys::System& system, const config::Config* config) {
  const auto identity = system.identity();
  std::vector<mounts::MountPoint> points;
  for (const auto& mount : config == nullptr ? std::vector<config::Mount>() : config->mounts)
    points.push_back({.name = mount.name,
                      .server = mount.address,
                      .path = mount.path,
                      .target = normalize_path(mount.at),
                      .profile = mount.profile,
                      .options = mounts::parse_options(mount.options),
                      .boot = boot_way_of(mount.boot),
                      .here = sys::is_this_host(identity, mount.address) || sys::is_this_host(identity, mount.server),
                      .server_name = mount.server,
                      .origin = mount.origin.text()});
  return points;
}

Result<std::vector<mounts::MountPoint>> choose_mounts(Context& context, const config::Config* config,
                                                      const Arguments& arguments, bool unknown_paths) {
  auto all = mount_points(context.system, config);
  const auto& words = arguments.positional;
  if (arguments.flag("all") && !words.empty())
    return fail(ErrorCode::usage, "both names and --all were given", "give one of them");
  if (arguments.flag("all"))
    return all;
  std::vector<std::string> names;
  for (const auto& point : all)
    names.push_back(point.name);
  if (words.empty())
    return fail(ErrorCode::usage,
                names.empty() ? "name a mount point" : "name a mount (" + join(names, ", ") + ") or use --all",
                names.empty() && !unknown_paths ? "sharefs.yaml has no `mounts:`" : "");
  std::vector<mounts::MountPoint> selected;
  std::set<std::string> seen;
  for (const auto& word : words) {
    const bool is_path = word.find('/') != std::string::npos;
    if (is_path && !word.starts_with('/') && context.host.working_directory == k_no_directory)
      return fail(ErrorCode::usage, fmt::format("`{}` is relative, and the working directory is gone", word),
                  "give the whole path");
    mounts::MountPoint point;
    point.target = normalize_path(word, context.host.working_directory);
    const auto found = std::ranges::find_if(all, [&](const mounts::MountPoint& one) {
      return one.name == word || (is_path && one.target == point.target);
    });
    if (found != all.end()) {
      point = *found;
    } else if (!unknown_paths || !is_path) {
      std::vector<std::string> targets;
      for (const auto& one : all)
        targets.push_back(one.target);
      const auto hint = name_hint(word, names, "the mounts are", std::move(targets));
      return fail(ErrorCode::usage, fmt::format("there is no mount `{}`", word),
                  hint.empty() ? "there are no `mounts:` in sharefs.yaml" : hint);
    }
    if (seen.insert(point.name + "\n" + point.target).second)
      selected.push_back(std::move(point));
  }
  return selected;
}

Result<void> require_root_for_mounts(const Context& context) {
  return require_root(context, "only root can mount and unmount");
}

Result<mounts::Observation> observe(Context& context, const mounts::ProbeRequest& request) {
  const ui::Progress progress(context.console, request.servers ? "asking the servers" : "reading the mounts");
  return mounts::probe(context.system, request);
}

std::set<std::string> verify(Context& context, const std::vector<mounts::MountPoint>& points,
                             std::chrono::milliseconds deadline) {
  const auto verification = mounts::verify(context.system, points, deadline);
  std::set<std::string> failed;
  for (std::size_t index = 0; index < verification.results.size(); ++index) {
    const auto& one = verification.results[index];
    if (!one.ok)
      failed.insert(one.target);
    else if (!context.flags.json)
      context.console.message(fmt::format("{}: {}", mounts::name_of(points[index]), mounts::describe(one)));
  }
  context.report(verification.diagnoses);
  context.envelope.fields["verified"] = json_of(verification.results);
  return failed;
}

void report_holders(Context& context, const std::vector<sys::MountEntry>& mounts,
                    const std::function<void(const std::string& target, const mounts::HolderReport&)>& head) {
  if (mounts.empty())
    return;
  auto json = Json::object();
  for (const auto& [target, found] : mounts::find_holders(context.system, mounts, k_holders_deadline)) {
    json[to_utf8(target)] = json_of(found.holders);
    head(target, found);
    for (const auto& line : mounts::describe(found))
      context.console.message("- " + line);
    for (const auto& gap : found.gaps)
      context.console.message("not seen: " + gap);
  }
  context.envelope.fields["holders"] = std::move(json);
}

void report_holders_of_different(Context& context, const mounts::Observation& seen) {
  std::vector<sys::MountEntry> different;
  for (const auto& state : seen.states)
    if (state.mounted() && (mounts::is_good(state.health) || state.health == mounts::Health::read_only) &&
        !mounts::can_remount(state.differences))
      different.push_back(*state.mount);
  report_holders(context, different, [&](const std::string& target, const mounts::HolderReport& found) {
    context.console.message(found.holders.empty() ? fmt::format("no process that uses {} was seen", target)
                                                  : fmt::format("{} is used by:", target));
  });
}

mounts::RecoveryRequest probe_recovery(Context& context, mounts::Observation seen) {
  const ui::Progress progress(context.console, "asking again");
  return mounts::probe_recovery(context.system, std::move(seen));
}

std::set<std::string> mounted_by(const plan::Plan& plan, const plan::Report& report) {
  auto targets = targets_by<plan::Mount>(plan, report);
  targets.merge(targets_by<plan::Remount>(plan, report));
  return targets;
}

std::set<std::string> unmounted_by(const plan::Plan& plan, const plan::Report& report) {
  return targets_by<plan::Unmount>(plan, report);
}

std::size_t count_failed_images(const plan::Plan& plan, const plan::Report& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.results, [&](const plan::StepResult& result) {
    return result.outcome == plan::Outcome::failed && is_of_image(plan.steps[result.step].action);
  }));
}

Json to_json(const mounts::MountState& state) {
  const auto& [name, server, path] = std::tie(state.point.name, state.point.server, state.point.path);
  const auto* space = state.space();
  const auto number = [&](auto value) { return space == nullptr ? Json(nullptr) : Json(value(*space)); };
  return {{"name", name.empty() ? Json(nullptr) : Json(to_utf8(name))},
          {"source", to_utf8(state.mounted() ? state.mount->source : format_source(server, path))},
          {"target", to_utf8(state.point.target)},
          {"state", mounts::to_string(state.health)},
          {"mounted", state.mounted()},
          {"latency_us", number([](const sys::Space& s) { return s.latency.count(); })},
          {"size_bytes", number([](const sys::Space& s) { return s.size_bytes; })},
          {"used_bytes", number([](const sys::Space& s) { return s.size_bytes - s.free_bytes; })},
          {"options", to_utf8(state.mount ? state.mount->super_options : "")},
          {"differences", json_of(state.differences)},
          {"detail", to_utf8(state.detail)}};
}

void add_states(Context& context, const std::vector<mounts::MountState>& states) {
  if (!context.flags.json)
    return; // the text of a thousand mounts takes noticeable time
  auto json = Json::array();
  for (const auto& state : states)
    json.push_back(to_json(state));
  context.envelope.fields["mounts"] = std::move(json);
}

namespace {

constexpr std::chrono::milliseconds k_longest_look{2000}, k_pending_deadline{500};

/// Removes the steps for directories that already are ordinary ones. A directory on which something is mounted is not
/// examined.
void drop_ordinary_directories(sys::System& system, const sys::MountTable& table, plan::Plan& plan) {
  std::erase_if(plan.steps, [&](const plan::Step& step) {
    const auto* flag = std::get_if<plan::SetImmutable>(&step.action);
    if (flag == nullptr || table.at(flag->path) != nullptr)
      return false;
    const auto checked = plan::check_action(*flag, system);
    return checked && checked->already;
  });
}

} // namespace

std::chrono::milliseconds MountScope::path_deadline() const {
  return std::min(timeout, k_longest_look);
}

plan::Plan plan_cache_directories(sys::System& system, const config::Config& config) {
  const bool stages = config.stage || config.conda;
  return cachefix::plan_local_directories(system, config.caches.local,
                                          stages ? stage_directories(config) : std::set<std::string>{},
                                          exports::system_directory_reason);
}

Result<MountWork> plan_mount_work(Context& context, const config::Config& config,
                                  const std::vector<mounts::MountPoint>& wanted, const MountScope& scope) {
  mounts::ProbeRequest request;
  request.wanted = wanted;
  request.want_access = request.targets = true;
  request.server_deadline = scope.timeout;
  request.path_deadline = scope.path_deadline();
  TRY_ASSIGN(auto seen, observe(context, request));
  MountWork work{std::move(seen), {}};
  work.plan = mounts::plan_mounts(work.seen, scope.remount);
  const auto at_boot = scope.boot || scope.caches ? mounts::read_boot_facts(context.system) : mounts::BootFacts{};
  if (scope.boot) {
    const auto boot = mounts::plan_boot(context.system, at_boot, work.seen, work.plan.blocked);
    mounts::append(work.plan.diagnoses, boot.diagnoses);
    work.plan.plan.add(boot.plan);
  }
  if (scope.caches) { // a run for all mounts of sharefs.yaml
    mounts::append(work.plan.diagnoses, mounts::diagnose_left_at_boot(at_boot, wanted));
    work.plan.plan.add(plan_cache_directories(context.system, config));
    auto images = staged_images(context, &config);
    mounts::append(work.plan.diagnoses, conda::take_out_damaged(context.system, images, say_to(context)));
    work.plan.plan.add(conda::mount_staged(images));
    if (scope.boot && !images.empty())
      plan_staged_unit(context, true, work.plan.plan);
  }
  return work;
}

Json mounts_json(const MountWork& work, const std::set<std::string>& good, bool applied) {
  auto json = Json::array();
  for (const auto& state : work.seen.states) {
    const auto& target = state.point.target;
    auto one = to_json(state);
    if (contains(work.plan.planned, target))
      one["outcome"] = !applied ? "planned" : good.contains(target) ? "mounted" : "failed";
    else
      one["outcome"] = contains(work.plan.right, target) ? "unchanged" : "blocked";
    json.push_back(std::move(one));
  }
  return json;
}

Result<UnmountWork> plan_unmount_work(Context& context, std::vector<mounts::MountPoint> points,
                                      const mounts::UnmountOptions& options, Forget forget) {
  TRY_ASSIGN(auto table, context.system.mounts());
  const auto pending = mounts::find_pending(context.system, k_pending_deadline);
  UnmountWork work{std::move(table), mounts::read_boot_facts(context.system), {}};
  if (forget != Forget::nothing) // an entry of sharefs can be forgotten although its target is not mounted now
    for (const auto& entry : work.boot.entries) {
      if (!entry.ours)
        continue;
      const auto named = std::ranges::find(points, entry.target, &mounts::MountPoint::target);
      if (named != points.end() && named->name.empty())
        named->name = named->target;
      else if (named == points.end() && forget == Forget::all)
        points.push_back({.name = entry.target, .target = entry.target});
    }
  work.plan = mounts::plan_unmounts(work.table, points, pending, options);
  if (forget != Forget::nothing) {
    mounts::forget_at_boot(work.boot, mounts::read_boot_host(context.system), work.table, points, work.plan);
    drop_ordinary_directories(context.system, work.table, work.plan.plan);
  }
  return work;
}

void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report) {
  std::vector<sys::MountEntry> busy;
  for (const auto& result : report.results) {
    const auto* action = std::get_if<plan::Unmount>(&plan.steps[result.step].action);
    const auto* entry = action == nullptr ? nullptr : table.at(action->target);
    if (entry != nullptr && result.error && result.error->code == ErrorCode::busy)
      busy.push_back(*entry);
  }
  report_holders(context, busy, [&](const std::string& target, const mounts::HolderReport& holders) {
    context.report({mounts::diagnose_busy(target, holders)});
  });
}

} // namespace sharefs::cli

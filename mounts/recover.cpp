#include "mounts/recover.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "mounts/diagnose.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace sharefs::mounts {

namespace {

bool is_there(const sys::NfsProbe* server) {
  return server != nullptr && server->usable();
}

/// Returns the command that mounts it again once it was unmounted.
std::string way_back(const MountState& state) {
  return state.wanted ? "sharefs mount " + shell_quote(name_of(state.point)) : "sharefs undo";
}

Diagnosis server_away(const MountState& state, const sys::NfsProbe* server) {
  const auto* stage = server == nullptr ? nullptr : server->failing();
  return about(
      state.point, Severity::error, "SF212",
      fmt::format(
          "{} is {} and waits for its server {}{}: nothing was changed", state.point.target, to_string(state.health),
          state.point.server,
          stage == nullptr ? "" : fmt::format(", which fails at stage {}: {}", to_string(stage->stage), stage->detail)),
      stage == nullptr || stage->hint.empty() ? "bring the server back; programs that wait then go on" : stage->hint);
}

Decision remedy_for_hung(const MountState& state, const sys::NfsProbe* server, bool force, bool moved) {
  if (moved && !state.moved_to.empty() && is_there(server))
    return {Remedy::remount, {}};
  if (force)
    return {is_there(server) ? Remedy::remount : Remedy::detach, {}};
  if (!is_there(server))
    return {Remedy::wait, {server_away(state, server)}};
  return {Remedy::wait,
          {about(state.point, Severity::error, "SF213",
                 fmt::format("{} does not answer although its server {} does: nothing was changed", state.point.target,
                             state.point.server),
                 "after a restart of the server clients need up to its grace period (90 s); if it stays so, --force "
                 "gives up what was not yet written",
                 fmt::format("sharefs recover --force {}", shell_quote(name_of(state.point))))}};
}

Decision remedy_for_stale(const MountState& state, const std::vector<Health>& checks, const sys::NfsProbe* server,
                          bool force) {
  const bool agree = std::ranges::all_of(checks, [](Health one) { return one == Health::stale; });
  if (!agree || checks.size() < static_cast<std::size_t>(k_recovery_checks))
    return {
        Remedy::wait,
        {about(state.point, Severity::warning, "SF225",
               fmt::format("{} was stale in some checks and not in others: nothing was changed", state.point.target),
               "the server may be exporting anew: try again in a moment")}};
  if (is_there(server))
    return {Remedy::remount, {}};
  if (force)
    return {Remedy::detach, {}};
  return {Remedy::wait, {server_away(state, server)}};
}

class Recovery {
 public:
  explicit Recovery(const RecoveryRequest& request) : m_request(request) {}

  /// Plans outer mounts first, whatever their order in the request: an inner mount cannot be reached through a stale
  /// outer one, and is unmounted and mounted together with it.
  MountPlan plan() {
    std::vector<const MountState*> ordered;
    for (const auto& state : m_request.seen.states)
      ordered.push_back(&state);
    std::ranges::stable_sort(ordered, {}, [](const MountState* state) { return path_depth(state->point.target); });
    for (const auto* state : ordered)
      if (!m_with_outer.contains(state->point.target))
        plan_one(*state);
    mount_missing();
    m_result.plan = plan::merge_nested_groups(std::move(m_result.plan));
    return std::move(m_result);
  }

 private:
  void plan_one(const MountState& state) {
    const auto& target = state.point.target;
    if (const auto outer = find_outer(m_broken, target); !outer.empty() && state.health != Health::missing)
      return wait(state, {about(state.point, Severity::error, "SF222",
                                fmt::format("{} lies below {}, which cannot be recovered now", target, outer),
                                "the outer mount comes first")});
    const auto checks = m_request.checks.find(target);
    const auto decision =
        choose_remedy(state, checks == m_request.checks.end() ? std::vector{state.health} : checks->second,
                      m_request.seen.server(state.point), m_request.force, m_request.moved);
    switch (decision.remedy) {
    case Remedy::none:
      append(m_result.diagnoses, decision.diagnoses);
      m_result.right.push_back(target);
      break;
    case Remedy::wait:
      wait(state, decision.diagnoses);
      break;
    case Remedy::mount:
      m_missing.insert(target);
      break;
    case Remedy::remount:
      remount(state);
      break;
    case Remedy::detach:
      unmount(state, find_mounts_at(m_request.seen.table, target));
      m_result.only_unmounted.push_back(target);
      m_result.plan.notes.push_back(fmt::format("{}: its server is away, so it is only unmounted; `{}` brings it back",
                                                name_of(state.point), way_back(state)));
      break;
    }
  }

  /// Leaves the mount as it is. If it is broken, the mounts below it are left, too.
  void wait(const MountState& state, const Diagnoses& why) {
    append(m_result.diagnoses, why);
    m_result.blocked.push_back(state.point.target);
    if (state.health == Health::stale || state.health == Health::hung)
      m_broken.insert(state.point.target);
  }

  void remount(const MountState& state) {
    const auto& target = state.point.target;
    const auto mounts = find_mounts_at(m_request.seen.table, target);
    // A mount of ours in its place would keep the outer one from being unmounted.
    const auto* outer = m_request.seen.table.owner_of(parent_path(target));
    if (!state.wanted && outer != nullptr && outer->fs_type == "nfs4" && is_submount(*outer, *state.mount)) {
      unmount(state, mounts);
      m_result.only_unmounted.push_back(target);
      m_result.plan.notes.push_back(
          fmt::format("{}: the kernel has mounted it by itself, and does so again at the next access", target));
      return;
    }
    const auto name = shell_quote(name_of(state.point));
    for (const auto* one : mounts.below)
      if (!sys::is_nfs(*one) && !m_request.staged.contains(one->target))
        return wait(state, {about(state.point, Severity::error, "SF224",
                                  fmt::format("{} ({}) is mounted below {} and would be lost: nothing was changed",
                                              one->target, one->fs_type, target),
                                  fmt::format("`sharefs umount {} --lazy` detaches both, `{}` brings the share back",
                                              name, way_back(state)))});
    // A mount that the server may refuse to mount again is not unmounted.
    const auto point = state.wanted ? state.point : point_of(*state.mount);
    auto refusals = preflight(point, m_request.seen.server(point));
    for (auto& refusal : refusals)
      refusal.hint = or_unmount(state, refusal.hint);
    if (has_errors(refusals) || (!refusals.empty() && !m_request.force))
      return wait(state, refusals);
    unmount(state, mounts);
    add_mount_step(m_result.plan, target, point);
    m_result.planned.push_back(target);
    // The mounts below it were detached together with it, and are mounted again, the outer ones first. Their mount
    // points may be missing, because the directory was often made anew on the server.
    for (auto one = mounts.below.rbegin(); one != mounts.below.rend(); ++one) {
      if (!sys::is_nfs(**one))
        continue;
      for (const auto& path : paths_below(target, (*one)->target))
        m_result.plan.add(target, path == (*one)->target ? "the mount point" : "above the mount point",
                          plan::make_directory(path));
      add_mount_step(m_result.plan, target, point_of(**one));
    }
  }

  /// Adds a lazy unmount: an unused mount ends at once, and a mount that is used is only detached. (Not all users can
  /// be seen: a loop device, an overlay.) Mounts below it cannot be reached through it, and are detached, too.
  void unmount(const MountState& state, const MountsAt& mounts) {
    const auto& target = state.point.target;
    const auto holders = m_request.holders.find(target);
    const UnmountOptions options{state.health == Health::hung, true};
    auto& notes = m_result.plan.notes;
    if (holders != m_request.holders.end() && !holders->second.holders.empty())
      for (const auto& line : describe(holders->second))
        notes.push_back(fmt::format("{} is in use by {}", target, line));
    if (options.force)
      notes.push_back(fmt::format(
          "{}: every request fails that waits for the server; data that was not yet written is lost", target));
    notes.push_back(fmt::format("{}: programs that use it keep the old, dead mount until they end", target));
    for (const auto* layer : mounts.layers)
      m_result.plan.add(target, fmt::format("it is {}", to_string(state.health)), unmount_action(*layer, options));
    for (const auto* one : mounts.below)
      m_with_outer.insert(one->target);
  }

  void mount_missing() {
    Observation part = m_request.seen;
    std::erase_if(part.states, [&](const MountState& state) { return !m_missing.contains(state.point.target); });
    const auto mounts = plan_mounts(part);
    append(m_result.diagnoses, mounts.diagnoses);
    m_result.plan.add(mounts.plan);
    append(m_result.planned, mounts.planned);
    append(m_result.blocked, mounts.blocked);
  }

  const RecoveryRequest& m_request;
  MountPlan m_result;
  std::set<std::string> m_missing;    ///< targets to mount
  std::set<std::string> m_broken;     ///< stale or hung mounts that are left as they are
  std::set<std::string> m_with_outer; ///< targets that are unmounted and mounted together with their outer mount
};

} // namespace

Decision choose_remedy(const MountState& state, const std::vector<Health>& checks, const sys::NfsProbe* server,
                       bool force, bool moved) {
  if (state.health == Health::missing)
    return {state.wanted ? Remedy::mount : Remedy::none, {}};
  if (state.health == Health::stale)
    return remedy_for_stale(state, checks, server, force);
  if (state.health == Health::hung)
    return remedy_for_hung(state, server, force, moved);
  auto found = diagnose(state, server);
  const bool well = is_good(state.health) && !has_errors(found);
  return {well ? Remedy::none : Remedy::wait, std::move(found)};
}

MountPlan plan_recovery(const RecoveryRequest& request) {
  return Recovery(request).plan();
}

std::vector<MountState*> find_doubtful(Observation& seen) {
  std::vector<MountState*> doubtful;
  for (auto& state : seen.states)
    if (state.health == Health::stale || (state.health == Health::hung && is_there(seen.server(state.point))))
      doubtful.push_back(&state);
  return doubtful;
}

RecoveryRequest probe_recovery(sys::System& system, Observation seen) {
  RecoveryRequest request{std::move(seen), {}, {}};
  auto& states = request.seen.states;
  for (const auto& state : states)
    request.checks[state.point.target] = {state.health};
  const auto doubtful = find_doubtful(request.seen);
  for (int check = 1; check < k_recovery_checks && !doubtful.empty(); ++check) {
    std::this_thread::sleep_for(k_recovery_pause);
    probe_again(system, doubtful, k_recovery_deadline);
    for (const auto* state : doubtful)
      request.checks[state->point.target].push_back(state->health);
  }
  std::vector<sys::MountEntry> broken;
  for (const auto& state : states)
    if (state.mounted() && (state.health == Health::stale || state.health == Health::hung))
      broken.push_back(*state.mount);
  if (!broken.empty())
    request.holders = find_holders(system, broken, k_recovery_deadline);
  return request;
}

Diagnoses check_recovered(const MountState& before, const MountState& after) {
  const auto& target = after.point.target;
  if (is_good(after.health)) // also a directory of this host that is bound to its place
    return {};
  if (!after.mounted())
    return {about(after.point, Severity::error, "SF217", fmt::format("nothing is mounted on {}", target),
                  "see the failed step above",
                  before.wanted ? "sharefs mount " + shell_quote(name_of(after.point)) : "")};
  auto found = about(after.point, Severity::error, "SF226",
                     fmt::format("{} was mounted again and is still {}", target, to_string(after.health)),
                     "run `sharefs status` for the cause");
  // An equal device number is no proof: the kernel may give the same number to a new superblock.
  if (before.mount && before.mount->major == after.mount->major && before.mount->minor == after.mount->minor) {
    found.message += "; it seems to have got its old superblock back, which somebody still uses";
    found.hint = "end the programs that hold the old mount (also in containers), then recover again";
  }
  return {found};
}

RecoveryCheck check_recovery(sys::System& system, const RecoveryRequest& request, const MountPlan& plan,
                             std::chrono::milliseconds deadline) {
  ProbeRequest again;
  for (const auto& state : request.seen.states)
    if (state.wanted)
      again.wanted.push_back(state.point);
  again.others = true;
  again.servers = false;
  again.path_deadline = deadline;
  const auto after = probe(system, again);
  if (!after)
    return {{}, {{Severity::error, "SF226", "", after.error().message, after.error().hint, ""}}};
  RecoveryCheck check;
  for (const auto& before : request.seen.states) {
    const auto& target = before.point.target;
    if (std::ranges::find(plan.planned, target) == plan.planned.end())
      continue;
    MountState missing;
    missing.point = before.point;
    const auto now = std::ranges::find_if(after->states, [&](const auto& one) { return one.point.target == target; });
    const auto found = check_recovered(before, now == after->states.end() ? missing : *now);
    if (found.empty())
      check.good.insert(target);
    append(check.diagnoses, found);
  }
  return check;
}

} // namespace sharefs::mounts

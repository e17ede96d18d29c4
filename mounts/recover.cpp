#include "mounts/recover.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/plan_mount.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

void append(Diagnoses& all, const Diagnoses& more) {
  all.insert(all.end(), more.begin(), more.end());
}

bool is_there(const sys::NfsProbe* server) {
  return server != nullptr && server->usable();
}

Diagnosis server_away(const MountState& state, const sys::NfsProbe* server) {
  const auto* stage = server == nullptr ? nullptr : server->failing();
  return {
      Severity::error,
      "SF212",
      name_of(state.point),
      fmt::format(
          "{} is {} and waits for its server {}{}: nothing was changed", state.point.target, to_string(state.health),
          state.point.server,
          stage == nullptr ? "" : fmt::format(", which fails at stage {}: {}", to_string(stage->stage), stage->detail)),
      stage == nullptr || stage->hint.empty() ? "bring the server back; programs that wait then go on" : stage->hint,
      ""};
}

Verdict judge_hung(const MountState& state, const sys::NfsProbe* server, bool force) {
  if (force)
    return {is_there(server) ? Remedy::remount : Remedy::detach, {}};
  if (!is_there(server))
    return {Remedy::wait, {server_away(state, server)}};
  return {
      Remedy::wait,
      {{Severity::error, "SF213", name_of(state.point),
        fmt::format("{} does not answer although its server {} does: nothing was changed", state.point.target,
                    state.point.server),
        "after a restart of the server clients need up to its grace period (90 s); if it stays so, --force gives up "
        "what was not yet written",
        fmt::format("sharefs recover --force {}", shell_quote(name_of(state.point)))}}};
}

Verdict judge_stale(const MountState& state, const std::vector<Health>& looks, const sys::NfsProbe* server,
                    bool force) {
  const bool agree = std::all_of(looks.begin(), looks.end(), [](Health look) { return look == Health::stale; });
  if (!agree || looks.size() < static_cast<std::size_t>(k_recovery_looks))
    return {Remedy::wait,
            {{Severity::warning, "SF225", name_of(state.point),
              fmt::format("{} was stale in some looks and not in others: nothing was changed", state.point.target),
              "the server may be exporting anew: try again in a moment", ""}}};
  if (is_there(server))
    return {Remedy::remount, {}};
  if (force)
    return {Remedy::detach, {}};
  return {Remedy::wait, {server_away(state, server)}};
}

/// Mounted again as the configuration says, or as it was.
plan::Mount mount_again(const MountState& state, std::chrono::milliseconds deadline) {
  if (state.wanted)
    return mount_action(state.point, deadline);
  return plan::Mount{state.mount->source, state.point.target, "nfs", remount_options(*state.mount), deadline};
}

class Recovery {
 public:
  explicit Recovery(const RecoveryRequest& request) : m_request(request) {}

  /// The outer mount first, in whatever order they were named: an inner one cannot be reached through a stale outer
  /// one, and goes and comes with it.
  RecoveryPlan plan() {
    std::vector<const MountState*> ordered;
    for (const auto& state : m_request.seen.states)
      ordered.push_back(&state);
    std::ranges::stable_sort(ordered, {},
                             [](const MountState* state) { return ancestors_and_self(state->point.target).size(); });
    for (const auto* state : ordered)
      consider(*state);
    mount_missing();
    m_result.plan = plan::merge_nested_groups(std::move(m_result.plan));
    return std::move(m_result);
  }

 private:
  void consider(const MountState& state) {
    const auto& target = state.point.target;
    if (m_carried.contains(target))
      return;
    if (const auto outer = broken_above(target); !outer.empty() && state.health != Health::missing) {
      m_result.diagnoses.push_back({Severity::error, "SF222", name_of(state.point),
                                    fmt::format("{} lies below {}, which cannot be recovered now", target, outer),
                                    "the outer mount comes first", ""});
      m_result.waiting.push_back(target);
      return;
    }
    const auto* server = m_request.seen.server(state.point.server);
    const auto looks = m_request.looks.find(target);
    const auto verdict = judge(state, looks == m_request.looks.end() ? std::vector{state.health} : looks->second,
                               server, m_request.force);
    append(m_result.diagnoses, verdict.diagnoses);
    switch (verdict.remedy) {
    case Remedy::none:
      m_result.well.push_back(target);
      break;
    case Remedy::wait:
      wait(state);
      break;
    case Remedy::mount:
      m_missing.push_back(target);
      break;
    case Remedy::remount:
      remount(state);
      break;
    case Remedy::detach:
      add_unmounts(state);
      carry(nested(m_request.seen.table, target));
      m_result.given_up.push_back(target);
      m_result.plan.notes.push_back(fmt::format(
          "{}: its server is away, so it is only unmounted; `sharefs mount` brings it back", name_of(state.point)));
      break;
    }
  }

  void wait(const MountState& state) {
    m_result.waiting.push_back(state.point.target);
    if (state.health == Health::stale || state.health == Health::hung)
      m_waiting.insert(state.point.target);
  }

  void carry(const std::vector<const sys::MountEntry*>& inner) {
    for (const auto* one : inner)
      m_carried.insert(one->target);
  }

  /// A mount above `target` that stays as broken as it is; "" if there is none.
  [[nodiscard]] std::string broken_above(const std::string& target) const {
    for (const auto& path : ancestors_and_self(parent_path(target)))
      if (m_waiting.contains(path))
        return path;
    return {};
  }

  void remount(const MountState& state) {
    const auto& target = state.point.target;
    const auto inner = nested(m_request.seen.table, target);
    const auto foreign =
        std::find_if(inner.begin(), inner.end(), [](const sys::MountEntry* one) { return !sys::is_nfs(*one); });
    if (foreign != inner.end()) {
      m_result.diagnoses.push_back({Severity::error, "SF224", name_of(state.point),
                                    fmt::format("{} ({}) is mounted below {} and would be lost: nothing was changed",
                                                (*foreign)->target, (*foreign)->fs_type, target),
                                    "unmount it first", ""});
      wait(state);
      return;
    }
    // Unmounted is quickly done; what the server may refuse to give back stays where it is.
    auto refusals = preflight(state.point, m_request.seen.server(state.point.server));
    if (has_errors(refusals) || (!refusals.empty() && !m_request.force)) {
      append(m_result.diagnoses, refusals);
      wait(state);
      return;
    }
    add_unmounts(state);
    auto mount = mount_again(state, m_request.mount_deadline);
    auto why = fmt::format("{}, options {}", name_of(state.point), mount.options);
    m_result.plan.add(target, std::move(why), std::move(mount));
    m_result.planned.push_back(target);
    carry(inner);
    // Detached with their parent: back in the opposite order, the outer one first. What is stale was often made anew
    // on the server, so their directories may be gone.
    for (auto one = inner.rbegin(); one != inner.rend(); ++one) {
      for (const auto& path : ancestors_and_self((*one)->target))
        if (path != target && is_under(path, target))
          m_result.plan.add(target, "the mount point", plan::MakeDirectory{path, 0755, std::nullopt});
      m_result.plan.add(
          target, fmt::format("it lies below {}", target),
          plan::Mount{(*one)->source, (*one)->target, "nfs", remount_options(**one), m_request.mount_deadline});
    }
  }

  /// Plain where nobody is in the way, else lazy; a mount below cannot be reached through a stale parent, so it is
  /// detached with it.
  void add_unmounts(const MountState& state) {
    const auto& target = state.point.target;
    const auto holders = m_request.holders.find(target);
    const bool held = holders != m_request.holders.end() && !holders->second.holders.empty();
    const auto stacked = layers(m_request.seen.table, target);
    const bool holds_mounts = m_request.seen.table.below(target).size() > stacked.size();
    const bool hung = state.health == Health::hung;
    UnmountOptions options{hung, hung || held || m_request.lazy || holds_mounts, m_request.unmount_deadline};
    if (held)
      for (const auto& line : describe(holders->second))
        m_result.plan.notes.push_back(fmt::format("{} is in use by {}", target, line));
    if (options.force)
      m_result.plan.notes.push_back(fmt::format(
          "{}: --force fails every request that waits for the server; data that was not yet written is lost", target));
    if (options.lazy)
      m_result.plan.notes.push_back(
          fmt::format("{}: programs that use it keep the old, dead mount until they end", target));
    for (const auto* layer : stacked)
      m_result.plan.add(target, fmt::format("it is {}", to_string(state.health)), unmount_action(*layer, options));
  }

  void mount_missing() {
    Observation part = m_request.seen;
    std::vector<MountPoint> wanted;
    part.states.clear();
    for (std::size_t index = 0; index < m_request.wanted.size() && index < m_request.seen.states.size(); ++index) {
      const auto& state = m_request.seen.states[index];
      if (std::find(m_missing.begin(), m_missing.end(), state.point.target) == m_missing.end())
        continue;
      part.states.push_back(state);
      wanted.push_back(m_request.wanted[index]);
    }
    if (wanted.empty())
      return;
    auto mounts = plan_mounts(part, wanted, m_request.mount_deadline);
    append(m_result.diagnoses, mounts.diagnoses);
    for (auto& step : mounts.plan.steps)
      m_result.plan.steps.push_back(std::move(step));
    for (auto& note : mounts.plan.notes)
      m_result.plan.notes.push_back(std::move(note));
    m_result.planned.insert(m_result.planned.end(), mounts.planned.begin(), mounts.planned.end());
    m_result.waiting.insert(m_result.waiting.end(), mounts.blocked.begin(), mounts.blocked.end());
  }

  const RecoveryRequest& m_request;
  RecoveryPlan m_result;
  std::vector<std::string> m_missing;
  std::set<std::string> m_waiting; ///< stale or hung mounts that are left as they are
  std::set<std::string> m_carried; ///< targets that go and come with the mount that they lie in
};

} // namespace

Verdict judge(const MountState& state, const std::vector<Health>& looks, const sys::NfsProbe* server, bool force) {
  switch (state.health) {
  case Health::healthy:
  case Health::slow:
  case Health::full:
  case Health::autofs_idle:
    return {Remedy::none, diagnose(state, server)};
  case Health::missing:
    return {state.wanted ? Remedy::mount : Remedy::none, {}};
  case Health::stale:
    return judge_stale(state, looks, server, force);
  case Health::hung:
    return judge_hung(state, server, force);
  case Health::denied:
  case Health::read_only:
  case Health::wrong_source:
  case Health::backgrounding:
  case Health::unknown:
  case Health::failed:
    return {Remedy::wait, diagnose(state, server)};
  }
  return {Remedy::wait, diagnose(state, server)};
}

RecoveryPlan plan_recovery(const RecoveryRequest& request) {
  return Recovery(request).plan();
}

std::vector<std::string> doubtful(const Observation& seen) {
  std::vector<std::string> targets;
  for (const auto& state : seen.states)
    if (state.health == Health::stale || (state.health == Health::hung && is_there(seen.server(state.point.server))))
      targets.push_back(state.point.target);
  return targets;
}

Diagnoses check_recovered(const MountState& before, const MountState& after) {
  const auto& target = after.point.target;
  if (!after.mounted())
    return {{Severity::error, "SF217", name_of(after.point), fmt::format("nothing is mounted on {}", target),
             "see the failed step above", "sharefs mount " + shell_quote(name_of(after.point))}};
  const bool same =
      before.mount && before.mount->major == after.mount->major && before.mount->minor == after.mount->minor;
  if (is_good(after.health))
    return {};
  auto found = Diagnosis{Severity::error,
                         "SF226",
                         name_of(after.point),
                         fmt::format("{} was mounted again and is still {}", target, to_string(after.health)),
                         "run `sharefs status` for the cause",
                         ""};
  // No proof: after a plain unmount the kernel may give the same number to a new superblock.
  if (same) {
    found.message += "; it seems to have got its old superblock back, which somebody still uses";
    found.hint = "end the programs that hold the old mount (also in containers), then recover again";
  }
  return {found};
}

} // namespace sharefs::mounts

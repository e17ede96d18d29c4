#include "mounts/watch/rounds.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "mounts/probe.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts::watch {

namespace {

// A round takes at most the longer of the two, and a second: servers and mounts are asked at the same time.
constexpr std::chrono::milliseconds k_path_deadline{2000}, k_server_deadline{3000};
/// The pause before a mount that hangs is asked again doubles up to this. When its server is back, it is asked at once.
constexpr std::chrono::minutes k_longest_rest{5};

/// "stale", "failed: Input/output error"
std::string state_text(const MountState& state) {
  return to_string(state.health) + (state.detail.empty() ? "" : ": " + state.detail);
}

bool is_same_mount(const std::optional<MountState>& before, const sys::MountEntry* now) {
  if (!before || !before->mount || now == nullptr)
    return before && !before->mount && now == nullptr;
  return before->mount->id == now->id && before->mount->source == now->source && before->mount->major == now->major &&
         before->mount->minor == now->minor;
}

} // namespace

void Rounds::watch_these(std::vector<MountPoint> points, Policy policy) {
  std::map<std::string, const Watched*> known_at;
  for (const auto& one : m_seen.mounts)
    known_at.emplace(one.point.target, &one);
  std::vector<Watched> mounts;
  std::set<std::string> targets;
  for (auto& point : points) {
    targets.insert(point.target);
    const auto before = known_at.find(point.target);
    auto& mount = mounts.emplace_back();
    if (before != known_at.end() && before->second->point == point)
      mount = *before->second;
    else if (before != known_at.end())
      mount.tried = before->second->tried;
    mount.point = std::move(point);
    mount.why.clear(); // the policy may have changed, and is logged again
  }
  m_seen.mounts = std::move(mounts);
  m_policy = policy;
  m_pace.keep(targets);
  m_newest.reset();
}

void Rounds::read_journal() {
  const auto journal = m_open_journal();
  const auto newest = journal ? journal->newest_id() : fail(ErrorCode::failed, "");
  if (!newest || *newest == m_newest)
    return;
  std::set<std::string> targets;
  for (const auto& mount : m_seen.mounts)
    targets.insert(mount.point.target);
  m_changes = last_changes(*journal, targets);
  m_newest = *newest;
}

void Rounds::log(const Watched& mount, const char* event, Severity severity, std::string message) const {
  m_log(
      {event, severity, name_of(mount.point), mount.point.target, to_string(mount.state->health), std::move(message)});
}

void Rounds::take(Watched& mount, MountState state, Time now) {
  const auto trouble = trouble_of(state);
  mount.hung = state.health == Health::hung ? mount.hung + 1 : 0;
  if (mount.hung > 0)
    mount.rests_until = now + std::min<std::chrono::seconds>(pause_after(mount.hung), k_longest_rest);
  mount.looks = trouble == mount.trouble ? mount.looks + 1 : 1;
  mount.trouble = trouble;
  const auto before = std::exchange(mount.state, std::move(state));
  if ((!before || before->health != mount.state->health) &&
      !mount.tried) { // after a recovery report_run() logs the result
    const auto text = state_text(*mount.state);
    log(mount, "state", trouble == Trouble::none ? Severity::info : Severity::warning,
        before ? fmt::format("{}, was {}", text, to_string(before->health)) : text);
  }
  if (!mount.state->moved_to.empty() && (!before || before->moved_to != mount.state->moved_to))
    log(mount, "moved", Severity::warning,
        fmt::format("{} leads to {} now, and the mount still uses another address", mount.point.server,
                    mount.state->moved_to));
}

Result<std::vector<std::string>> Rounds::look(Time now) {
  auto& mounts = m_seen.mounts;
  ProbeRequest request;
  for (const auto& mount : mounts) {
    request.wanted.push_back(mount.point);
    if (mount.hung > 0 && now < mount.rests_until)
      request.resting.insert(mount.point.target);
  }
  request.path_deadline = k_path_deadline;
  request.server_deadline = k_server_deadline;
  TRY_ASSIGN(auto seen, probe(m_system, request));

  const auto rests = [&](std::size_t index) {
    return request.resting.contains(mounts[index].point.target) && seen.states[index].health == Health::unknown;
  };
  bool again = false;
  for (std::size_t index = 0; index < mounts.size(); ++index) {
    auto& mount = mounts[index];
    const auto* server = seen.server(mount.point.server);
    const auto was_there = m_seen.servers.find(mount.point.server);
    const bool returned =
        server != nullptr && server->usable() && (was_there == m_seen.servers.end() || !was_there->second);
    if (!rests(index) || (!returned && is_same_mount(mount.state, seen.table.at(mount.point.target))))
      continue;
    mount.rests_until = {};
    again = true;
  }
  if (again)
    return look(now);

  m_seen.servers.clear();
  for (const auto& [host, answer] : seen.servers)
    m_seen.servers[host] = answer.usable();
  bool missing = false;
  for (std::size_t index = 0; index < mounts.size(); ++index) {
    auto& mount = mounts[index];
    if (!rests(index))
      take(mount, std::move(seen.states[index]), now);
    m_pace.saw(mount.point.target, mount.is_well(), now);
    missing = missing || mount.trouble == Trouble::missing;
  }
  report_run();
  if (missing)
    read_journal();
  return choose(now);
}

std::vector<std::string> Rounds::choose(Time now) {
  std::vector<std::string> to_recover;
  for (auto& mount : m_seen.mounts) {
    const auto server = m_seen.servers.find(mount.point.server);
    const auto change = m_changes.find(mount.point.target);
    auto decision = decide(mount, server != m_seen.servers.end() && server->second,
                           change == m_changes.end() ? LastChange::none : change->second, m_policy, m_pace, now);
    if (decision.recover)
      to_recover.push_back(name_of(mount.point));
    if (decision.recover || (decision.why != mount.why && !decision.why.empty()))
      log(mount, decision.recover ? "recover" : "left", Severity::info,
          (decision.recover ? "recovering: " : "left alone: ") + decision.why);
    mount.why = std::move(decision.why);
  }
  return to_recover;
}

void Rounds::take_run(const std::vector<std::string>& names, const RunEnd& end, Time now) {
  std::set<std::string> targets;
  for (auto& mount : m_seen.mounts)
    if (std::ranges::find(names, name_of(mount.point)) != names.end()) {
      mount.tried = true;
      targets.insert(mount.point.target);
    }
  if (!end.busy)
    m_pace.tried(targets, now);
  m_ended = end;
  m_newest.reset(); // its entry may have been read before it was cut off, under the same id
}

/// The result of a recovery is what this look saw of the mounts, and not what the recovery said.
void Rounds::report_run() {
  const auto end = std::exchange(m_ended, std::nullopt).value_or(RunEnd{});
  for (auto& mount : m_seen.mounts) {
    if (!std::exchange(mount.tried, false))
      continue;
    const auto* result = end.busy ? "busy" : mount.is_well() ? "done" : "failed";
    ++m_seen.recoveries[{name_of(mount.point), result}];
    if (end.busy)
      log(mount, "busy", Severity::info, "left for later: " + end.message);
    else if (mount.is_well())
      log(mount, "recovered", Severity::info, "recovered");
    else
      log(mount, "failed", Severity::error,
          fmt::format("still {}{}", state_text(*mount.state), end.message.empty() ? "" : ": " + end.message));
  }
}

bool Rounds::table_differs(const sys::MountTable& table) const {
  return std::ranges::any_of(m_seen.mounts, [&](const Watched& mount) {
    return !mount.state || !is_same_mount(mount.state, table.at(mount.point.target));
  });
}

std::string Rounds::summary() const {
  std::vector<std::string> unwell;
  for (const auto& mount : m_seen.mounts)
    if (mount.state && !mount.is_well())
      unwell.push_back(fmt::format("{} ({})", name_of(mount.point), to_string(mount.state->health)));
  const auto all = count_of(m_seen.mounts.size(), "mount");
  if (unwell.empty())
    return all + " well";
  constexpr std::size_t k_most_named = 3;
  const auto count = unwell.size();
  unwell.resize(std::min(count, k_most_named));
  return fmt::format("{} of {} not well: {}{}", count, all, join(unwell, ", "),
                     count > k_most_named ? fmt::format(" and {} more", count - k_most_named) : "");
}

} // namespace sharefs::mounts::watch

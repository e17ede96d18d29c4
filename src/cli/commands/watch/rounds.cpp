#include "cli/commands/watch/rounds.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using watch::Trouble;

// The longest round, but for a second: servers are asked beside the mounts.
constexpr std::chrono::milliseconds k_path_deadline{2000}, k_server_deadline{3000};
/// A mount that hangs is asked again after a pause that doubles up to this; at once when its server is back.
constexpr std::chrono::minutes k_longest_rest{5};

Trouble trouble_of(const mounts::MountState& state) {
  using enum mounts::Health;
  if (state.health == missing && state.point.is_in_place())
    return Trouble::other; // a directory of this server's own
  switch (state.health) {
  case healthy:
  case slow:
  case autofs_idle:
  case here:
    return Trouble::none;
  case stale:
    return Trouble::stale;
  case missing:
    return Trouble::missing;
  case hung:
    return state.moved_to.empty() ? Trouble::hung : Trouble::moved;
  default:
    return Trouble::other;
  }
}

/// "stale", "failed: Input/output error"
std::string state_text(const mounts::MountState& state) {
  return mounts::to_string(state.health) + (state.detail.empty() ? "" : ": " + state.detail);
}

bool is_same_mount(const std::optional<mounts::MountState>& before, const sys::MountEntry* now) {
  if (!before || !before->mount || now == nullptr)
    return before && !before->mount && now == nullptr;
  return before->mount->id == now->id && before->mount->source == now->source && before->mount->major == now->major &&
         before->mount->minor == now->minor;
}

} // namespace

void WatchRounds::watch_these(std::vector<mounts::MountPoint> points, watch::Policy policy) {
  std::map<std::string, const Known*> known_at;
  for (const auto& one : m_known)
    known_at.emplace(one.point.target, &one);
  std::vector<Known> known;
  std::set<std::string> targets;
  for (auto& point : points) {
    targets.insert(point.target);
    const auto before = known_at.find(point.target);
    known.push_back(before == known_at.end() || before->second->point != point ? Known{} : *before->second);
    known.back().point = std::move(point);
    known.back().why.clear(); // the policy may be another
  }
  m_known = std::move(known);
  m_policy = policy;
  m_pace.keep(targets);
  m_newest.reset();
}

void WatchRounds::read_journal(Context& context) {
  const auto journal = journal_of(context);
  const auto newest = journal ? journal->newest_id() : fail(ErrorCode::failed, "");
  if (!newest || *newest == m_newest)
    return;
  std::set<std::string> targets;
  for (const auto& known : m_known)
    targets.insert(known.point.target);
  m_changes = watch::last_changes(*journal, targets);
  m_newest = *newest;
}

void WatchRounds::take(Known& known, mounts::MountState state, watch::Time now) {
  const auto trouble = trouble_of(state);
  known.hung = state.health == mounts::Health::hung ? known.hung + 1 : 0;
  if (known.hung > 0)
    known.rests_until = now + std::min<std::chrono::seconds>(watch::pause_after(known.hung), k_longest_rest);
  known.looks = trouble == known.trouble ? known.looks + 1 : 1;
  known.trouble = trouble;
  const bool news = !known.state || known.state->health != state.health;
  if (news && !m_run.contains(state.point.target)) { // a recovery says itself what came of it
    const auto text = state_text(state);
    m_say({"state", trouble == Trouble::none ? Severity::info : Severity::warning, name_of(state.point),
           state.point.target, mounts::to_string(state.health),
           known.state ? fmt::format("{}, was {}", text, mounts::to_string(known.state->health)) : text});
  }
  if (!state.moved_to.empty() && (!known.state || known.state->moved_to != state.moved_to))
    m_say({"moved", Severity::warning, name_of(state.point), state.point.target, mounts::to_string(state.health),
           fmt::format("{} leads to {} now, and the mount still uses another address", state.point.server,
                       state.moved_to)});
  known.state = std::move(state);
}

Result<std::vector<std::string>> WatchRounds::look(Context& context, watch::Time now) {
  mounts::ProbeRequest request;
  for (const auto& known : m_known) {
    request.wanted.push_back(known.point);
    if (known.hung > 0 && now < known.rests_until)
      request.resting.insert(known.point.target);
  }
  request.path_deadline = k_path_deadline;
  request.server_deadline = k_server_deadline;
  auto seen = mounts::probe(context.system, request);
  if (!seen)
    return fail(seen.error());

  const auto rests = [&](std::size_t index) {
    return request.resting.contains(m_known[index].point.target) &&
           seen->states[index].health == mounts::Health::unknown;
  };
  bool again = false;
  for (std::size_t index = 0; index < m_known.size(); ++index) {
    auto& known = m_known[index];
    const auto* server = seen->server(known.point.server);
    const auto was_there = m_servers.find(known.point.server);
    const bool returned = server != nullptr && server->usable() && (was_there == m_servers.end() || !was_there->second);
    if (!rests(index) || (!returned && is_same_mount(known.state, seen->table.at(known.point.target))))
      continue;
    known.rests_until = {};
    again = true;
  }
  if (again)
    return look(context, now);

  m_servers.clear();
  for (const auto& [host, answer] : seen->servers)
    m_servers[host] = answer.usable();
  bool missing = false;
  for (std::size_t index = 0; index < m_known.size(); ++index) {
    auto& known = m_known[index];
    if (!rests(index))
      take(known, std::move(seen->states[index]), now);
    m_pace.saw(known.point.target, known.trouble == Trouble::none, now);
    missing = missing || known.trouble == Trouble::missing;
  }
  report_run();
  if (missing)
    read_journal(context);
  return choose(now);
}

std::vector<std::string> WatchRounds::choose(watch::Time now) {
  std::vector<std::string> to_recover;
  for (auto& known : m_known) {
    const auto& point = known.point;
    const auto server = m_servers.find(point.server);
    const auto change = m_changes.find(point.target);
    const watch::SeenMount mount{point.target,
                                 name_of(point),
                                 mounts::to_string(known.state->health),
                                 known.trouble,
                                 server != m_servers.end() && server->second,
                                 known.looks,
                                 change == m_changes.end() ? watch::LastChange::none : change->second};
    auto decision = watch::decide(mount, m_policy, m_pace, now);
    if (decision.recover)
      to_recover.push_back(mount.name);
    if (decision.recover || (decision.why != known.why && !decision.why.empty()))
      m_say({decision.recover ? "recover" : "left", Severity::info, mount.name, mount.target, mount.state,
             (decision.recover ? "recovering: " : "left alone: ") + decision.why});
    known.why = std::move(decision.why);
  }
  return to_recover;
}

void WatchRounds::take_run(const std::vector<std::string>& names, const RunEnd& end, watch::Time now) {
  const std::set<std::string> tried(names.begin(), names.end());
  for (const auto& known : m_known)
    if (tried.contains(name_of(known.point)))
      m_run.insert(known.point.target);
  if (!end.busy)
    m_pace.tried(m_run, now);
  m_ended = end;
  m_newest.reset(); // the journal of a recovery that was cut off has no newer entry when it is
}

/// By what was seen of the mounts since, and not by what the recovery says of itself.
void WatchRounds::report_run() {
  if (!m_ended)
    return;
  for (const auto& known : m_known) {
    if (!m_run.contains(known.point.target))
      continue;
    const bool well = known.trouble == Trouble::none;
    const auto* result = m_ended->busy ? "busy" : well ? "done" : "failed";
    const auto& name = name_of(known.point);
    ++m_recoveries[{name, result}];
    m_say({m_ended->busy ? "busy"
           : well        ? "recovered"
                         : "failed",
           m_ended->busy || well ? Severity::info : Severity::error, name, known.point.target,
           mounts::to_string(known.state->health),
           m_ended->busy ? "left for later: " + m_ended->message
           : well        ? "recovered"
                         : fmt::format("still {}{}", state_text(*known.state),
                                m_ended->message.empty() ? "" : ": " + m_ended->message)});
  }
  m_ended.reset();
  m_run.clear();
}

bool WatchRounds::table_differs(const sys::MountTable& table) const {
  return std::ranges::any_of(m_known, [&](const Known& known) {
    return !known.state || !is_same_mount(known.state, table.at(known.point.target));
  });
}

bool WatchRounds::all_well() const {
  return std::ranges::all_of(m_known, [](const Known& known) { return known.trouble == Trouble::none; });
}

std::string WatchRounds::summary() const {
  std::vector<std::string> unwell;
  for (const auto& known : m_known)
    if (known.state && known.trouble != Trouble::none)
      unwell.push_back(fmt::format("{} ({})", name_of(known.point), mounts::to_string(known.state->health)));
  if (unwell.empty())
    return fmt::format("{} well", count_of(m_known.size(), "mount"));
  constexpr std::size_t k_most_named = 3;
  const auto more = unwell.size() > k_most_named ? fmt::format(" and {} more", unwell.size() - k_most_named) : "";
  const auto all = unwell.size();
  unwell.resize(std::min(all, k_most_named));
  return fmt::format("{} of {} not well: {}{}", all, count_of(m_known.size(), "mount"), join(unwell, ", "), more);
}

void WatchRounds::put_figures(watch::Figures& figures) const {
  figures.mounts.clear();
  figures.servers.clear();
  for (const auto& known : m_known) {
    if (!known.state)
      continue;
    const auto& state = *known.state;
    watch::MountFigures mount{.name = name_of(known.point),
                              .target = known.point.target,
                              .server = mounts::server_of(known.point),
                              .state = mounts::to_string(state.health),
                              .well = known.trouble == Trouble::none,
                              .moved = !state.moved_to.empty(),
                              .latency = std::nullopt};
    if (const auto* space = state.space(); space != nullptr && mounts::is_good(state.health)) {
      mount.latency = space->latency;
      mount.size_bytes = space->size_bytes;
      mount.free_bytes = space->free_bytes;
    }
    figures.mounts.push_back(std::move(mount));
  }
  for (const auto& known : m_known)
    if (const auto server = m_servers.find(known.point.server); server != m_servers.end())
      figures.servers[mounts::server_of(known.point)] = server->second;
  figures.recoveries = m_recoveries;
}

} // namespace sharefs::cli

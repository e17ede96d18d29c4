#include "mounts/watch/rounds.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "mounts/probe.hpp"

#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::mounts::watch {

namespace {

// A round takes at most the longer of the two deadlines and a second: servers and mounts are asked at the same time.
constexpr std::chrono::milliseconds k_path_deadline{2000}, k_server_deadline{3000};
/// The longest pause between checks of a mount that hangs while its server is away; the pause doubles up to this.
constexpr std::chrono::minutes k_longest_hung_pause{5};
/// The pause while its server answers: the mounts of a server that is back connect again one after the other, and later
/// than the probe does.
constexpr std::chrono::seconds k_answered_hung_pause{10};

/// Returns "stale", "failed: Input/output error".
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

void Rounds::set_mounts(std::vector<MountPoint> points, Policy policy) {
  std::map<std::string, const Watched*> known_at;
  for (const auto& one : m_facts.mounts)
    known_at.emplace(one.point.target, &one);
  std::vector<Watched> mounts;
  for (auto& point : points) {
    const auto before = known_at.find(point.target);
    auto& mount = mounts.emplace_back();
    auto known = before == known_at.end() ? MountPoint() : before->second->point;
    known.origin = point.origin; // its line may have moved
    if (before != known_at.end() && known == point) {
      mount = *before->second;
    } else if (before != known_at.end()) {
      mount.tries = before->second->tries;
      mount.recovery_ended = before->second->recovery_ended;
    }
    mount.point = std::move(point);
    mount.why.clear(); // the policy may have changed, so the reason is logged again
  }
  m_facts.mounts = std::move(mounts);
  m_policy = policy;
  m_newest.reset();
}

void Rounds::read_journal() {
  const auto journal = m_open_journal();
  const auto newest = journal ? journal->newest_id() : fail(ErrorCode::failed, "");
  if (!newest || *newest == m_newest)
    return;
  std::map<std::string, std::string> targets;
  for (const auto& mount : m_facts.mounts)
    targets.emplace(mount.point.target, mount.settled);
  m_changes = read_last_changes(*journal, targets, m_system.identity().boot_id);
  m_newest = *newest;
}

std::optional<std::string> Rounds::settled_entry() {
  const auto journal = m_open_journal();
  const auto newest = journal ? journal->newest_id() : fail(ErrorCode::failed, "");
  if (!newest)
    return std::nullopt;
  if (*newest != m_settled) {
    const auto entry = journal->load(*newest);
    if (!newest->empty() && (!entry || entry->state == plan::JournalState::running))
      return std::nullopt;
    m_settled = *newest;
  }
  return m_settled;
}

void Rounds::log(const Watched& mount, const char* event, Severity severity, std::string message) const {
  m_log(
      {event, severity, name_of(mount.point), mount.point.target, to_string(mount.state->health), std::move(message)});
}

bool Rounds::server_answers(const Watched& mount) const {
  const auto server = m_facts.servers.find(mounts::server_key(mount.point));
  return server != m_facts.servers.end() && server->second;
}

void Rounds::set_state(Watched& mount, MountState state, Time now) {
  const auto problem = problem_of(state);
  mount.hung = state.health == Health::hung ? mount.hung + 1 : 0;
  if (mount.hung > 0)
    mount.next_check =
        now + (server_answers(mount) ? k_answered_hung_pause
                                     : std::min<std::chrono::seconds>(pause_after(mount.hung), k_longest_hung_pause));
  mount.checks = problem == mount.problem ? mount.checks + 1 : 1;
  mount.problem = problem;
  const auto before = std::exchange(mount.state, std::move(state));
  if ((!before || before->health != mount.state->health) &&
      !mount.recovery_ended) { // after a recovery report_run() logs the result
    const auto text = state_text(*mount.state);
    log(mount, "state", problem == Problem::none ? Severity::info : Severity::warning,
        before ? fmt::format("{}, was {}", text, to_string(before->health)) : text);
  }
  if (!mount.state->moved_to.empty() && (!before || before->moved_to != mount.state->moved_to))
    log(mount, "moved", Severity::warning,
        fmt::format("{} leads to {} now, and the mount still uses another address", mount.point.server,
                    mount.state->moved_to));
}

Result<std::vector<std::string>> Rounds::check_mounts(Time now) {
  auto& mounts = m_facts.mounts;
  ProbeRequest request;
  for (const auto& mount : mounts) {
    request.wanted.push_back(mount.point);
    if (mount.hung > 0 && now < mount.next_check)
      request.skipped.insert(mount.point.target);
  }
  request.path_deadline = k_path_deadline;
  request.server_deadline = k_server_deadline;
  request.takeovers = std::exchange(m_takeovers, {});
  const auto settled = settled_entry(); // before the mounts are read: a later entry may be about what is read
  TRY_ASSIGN(auto seen, probe(m_system, request));
  m_takeovers = std::move(seen.takeovers);

  const auto was_skipped = [&](std::size_t index) {
    return request.skipped.contains(mounts[index].point.target) && seen.states[index].health == Health::unknown;
  };
  bool again = false;
  for (std::size_t index = 0; index < mounts.size(); ++index) {
    auto& mount = mounts[index];
    const auto* server = seen.server(mount.point);
    const bool returned = server != nullptr && server->usable() && !server_answers(mount);
    if (!was_skipped(index) || (!returned && is_same_mount(mount.state, seen.table.at(mount.point.target))))
      continue;
    mount.next_check = {};
    again = true;
  }
  if (again)
    return check_mounts(now);

  m_facts.servers.clear();
  for (const auto& [host, answer] : seen.servers)
    m_facts.servers[host] = answer.usable();
  bool missing = false;
  for (std::size_t index = 0; index < mounts.size(); ++index) {
    auto& mount = mounts[index];
    if (!was_skipped(index))
      set_state(mount, std::move(seen.states[index]), now);
    mount.tries.add_check(mount.is_well(), now);
    if (settled && (mount.state->mounted() || mount.state->health == Health::here)) {
      mount.settled = *settled;
      m_changes.erase(mount.point.target);
    }
    missing = missing || mount.problem == Problem::missing;
  }
  report_run();
  if (missing)
    read_journal();
  return choose_mounts(now);
}

std::vector<std::string> Rounds::choose_mounts(Time now) {
  std::vector<std::string> to_recover;
  const auto next_run = m_runs.size() < k_most_runs ? Time{} : m_runs.front() + k_run_window;
  for (auto& mount : m_facts.mounts) {
    const auto change = m_changes.find(mount.point.target);
    auto decision = decide(mount, server_answers(mount), change == m_changes.end() ? LastChange::none : change->second,
                           m_policy, next_run, now);
    if (decision.recover)
      to_recover.push_back(name_of(mount.point));
    if (decision.recover || (decision.why != mount.why && !decision.why.empty()))
      log(mount, decision.recover ? "recover" : "left", Severity::info,
          (decision.recover ? "recovering: " : "left alone: ") + decision.why);
    mount.why = std::move(decision.why);
  }
  return to_recover;
}

void Rounds::add_run(const std::vector<std::string>& names, const RunEnd& end, Time now) {
  for (auto& mount : m_facts.mounts)
    if (contains(names, name_of(mount.point))) {
      mount.recovery_ended = true;
      if (!end.busy)
        mount.tries = {mount.tries.attempts + 1, now, {}};
    }
  if (!end.busy)
    m_runs.push_back(now);
  if (m_runs.size() > k_most_runs)
    m_runs.pop_front();
  m_run_end = end;
  m_newest.reset(); // the entry of the run may have been read while it was running, under the same id
}

/// Logs the result of a recovery. The present state of the mounts decides, and not what the recovery has reported.
void Rounds::report_run() {
  const auto end = std::exchange(m_run_end, std::nullopt).value_or(RunEnd{});
  for (auto& mount : m_facts.mounts) {
    if (!std::exchange(mount.recovery_ended, false))
      continue;
    const auto* result = end.busy ? "busy" : mount.is_well() ? "done" : "failed";
    ++m_facts.recoveries[{name_of(mount.point), result}];
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
  return std::ranges::any_of(m_facts.mounts, [&](const Watched& mount) {
    return !mount.state || !is_same_mount(mount.state, table.at(mount.point.target));
  });
}

std::string Rounds::summary() const {
  std::vector<std::string> unwell;
  for (const auto& mount : m_facts.mounts)
    if (mount.state && !mount.is_well())
      unwell.push_back(fmt::format("{} ({})", name_of(mount.point), to_string(mount.state->health)));
  const auto all = count_of(m_facts.mounts.size(), "mount");
  if (unwell.empty())
    return all + " well";
  constexpr std::size_t k_most_named = 3;
  const auto count = unwell.size();
  unwell.resize(std::min(count, k_most_named));
  return fmt::format("{} of {} not well: {}{}", count, all, join(unwell, ", "),
                     count > k_most_named ? fmt::format(" and {} more", count - k_most_named) : "");
}

std::string format_log(const LogLine& line, LogForm form, std::chrono::system_clock::time_point now) {
  const auto time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  if (form == LogForm::plain) {
    const auto mark = line.severity == Severity::info ? "" : std::string(to_string(line.severity)) + ": ";
    return visible(fmt::format("{} {}{}{}", time, mark, line.mount.empty() ? "" : line.mount + ": ", line.message)) +
           "\n";
  }
  nlohmann::ordered_json json{
      {"time", time}, {"level", to_string(line.severity)}, {"event", line.event}, {"message", to_utf8(line.message)}};
  const auto put = [&](const char* name, const std::string& text) {
    if (!text.empty())
      json[name] = to_utf8(text);
  };
  put("mount", line.mount);
  put("target", line.target);
  put("state", line.state);
  // syslog(3): 6 informational, 4 warning, 3 error
  const auto* priority = line.severity == Severity::info ? "<6>" : line.severity == Severity::warning ? "<4>" : "<3>";
  return (form == LogForm::journal ? priority : "") + text_of_json(json) + "\n";
}

} // namespace sharefs::mounts::watch

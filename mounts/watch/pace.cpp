#include "mounts/watch/pace.hpp"

#include <algorithm>

namespace sharefs::mounts::watch {

std::chrono::seconds pause_after(std::size_t attempt) {
  std::chrono::seconds pause = k_first_pause;
  for (std::size_t number = 1; number < attempt && pause < k_longest_pause; ++number)
    pause *= 2;
  return std::min<std::chrono::seconds>(pause, k_longest_pause);
}

Time Pace::next_attempt(const std::string& target) const {
  const auto found = m_tries.find(target);
  return found == m_tries.end() ? Time{} : found->second.last + pause_after(found->second.attempts);
}

std::size_t Pace::attempts(const std::string& target) const {
  const auto found = m_tries.find(target);
  return found == m_tries.end() ? 0 : found->second.attempts;
}

Time Pace::next_run(Time now) const {
  if (m_runs.size() < k_most_runs || m_runs.front() + k_run_window <= now)
    return {};
  return m_runs.front() + k_run_window;
}

void Pace::add_run(const std::set<std::string>& targets, Time now) {
  for (const auto& target : targets) {
    auto& tries = m_tries[target];
    ++tries.attempts;
    tries.last = now;
    tries.well_since = {};
  }
  m_runs.push_back(now);
  if (m_runs.size() > k_most_runs)
    m_runs.pop_front();
}

void Pace::add_check(const std::string& target, bool well, Time now) {
  const auto found = m_tries.find(target);
  if (found == m_tries.end())
    return;
  auto& since = found->second.well_since;
  if (!well)
    since = {};
  else if (since == Time{})
    since = now;
  else if (now - since >= k_forgiven_after)
    m_tries.erase(found);
}

void Pace::keep_only(const std::set<std::string>& targets) {
  std::erase_if(m_tries, [&](const auto& one) { return !targets.contains(one.first); });
}

} // namespace sharefs::mounts::watch

#include "conda/noted_processes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace sharefs::conda {

std::optional<int> NotedProcesses::find(const Use& use) {
  if (use.host == m_self.process_host()) {
    const auto ended = sys::has_ended(m_system.files(), use.pid, use.start);
    return ended ? std::optional(*ended ? 0 : use.pid) : std::nullopt;
  }
  // A process of a container has a note with its number in the container's PID namespace.
  if (!m_self.pid_namespace.empty() || !use.host.starts_with(m_self.hostname + "+"))
    return std::nullopt;
  if (!m_contained)
    m_contained = read_contained();
  const auto found = m_contained->here.find({use.pid, use.start});
  return found != m_contained->here.end() ? std::optional(found->second)
         : m_contained->all               ? std::optional(0)
                                          : std::nullopt;
}

std::optional<bool> NotedProcesses::is_running(const Use& use) {
  const auto pid = find(use);
  return pid ? std::optional(*pid != 0) : std::nullopt;
}

bool NotedProcesses::keeps_generation(const Use& use, std::int64_t now) {
  const auto pid = find(use);
  if (pid == 0)
    return false;
  const bool its_own = pid && m_system.entry({.path = fmt::format("/proc/{}", *pid)}).uid == use.uid;
  return its_own || is_fresh(use, now);
}

/// False if this user cannot see the processes of others: proc(5), hidepid.
bool NotedProcesses::sees_others() const {
  return m_self.uid == 0 || sys::process_start(m_system.files(), 1);
}

NotedProcesses::Contained NotedProcesses::read_contained() const {
  constexpr std::size_t k_longest = 64U << 10U; // a status has all groups of its process
  const auto& files = m_system.files();
  const auto processes =
      sys::read_processes(m_system, sys::process_ids(m_system), {{.path = "status", .read_bytes = k_longest}});
  Contained found{.all = sees_others() && !processes.empty()};
  for (const auto& process : processes) {
    const auto& status = process.entries[0];
    if (status.kind == sys::EntryKind::missing)
      continue; // it has just ended
    const auto lines = split_lines(status.content);
    const auto numbers =
        std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("NSpid:"); });
    found.all = found.all && numbers != lines.end();
    const auto words = numbers == lines.end() ? std::vector<std::string>{} : split_words(*numbers);
    if (words.size() > 2) // proc(5): its number in each PID namespace, that of its own is last
      if (const auto start = sys::process_start(files, process.pid))
        found.here[{parse_number<int>(words.back()).value_or(0), *start}] = process.pid;
  }
  return found;
}

} // namespace sharefs::conda

#include "sys/find_processes.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

constexpr std::size_t k_comm_limit = 64, k_stat_limit = 4096;

std::string in_proc(int pid, const std::string& name) {
  return join_path(fmt::format("/proc/{}", pid), name);
}

constexpr std::size_t k_start_field = 22;

/// Finds a number in the text of /proc/PID/stat (proc(5)); `field` counts from 1 and must be more than 2. The second
/// field is the program's name in parentheses, and may itself contain spaces and parentheses.
std::optional<std::uint64_t> find_in_stat(std::string_view text, std::size_t field) {
  const auto fields = split_words(text.substr(std::min(text.rfind(')') + 1, text.size())));
  const std::size_t index = field - 3;
  return index < fields.size() ? parse_number<std::uint64_t>(fields[index]) : std::nullopt;
}

std::optional<std::uint64_t> read_stat(const Files& files, int pid, std::size_t field) {
  return find_in_stat(files.read(in_proc(pid, "stat"), k_stat_limit).value_or(""), field);
}

} // namespace

std::vector<int> process_ids(System& system, std::chrono::milliseconds deadline) {
  std::vector<int> pids;
  for (const auto& name : system.entry({.path = "/proc", .list = true}, deadline).names)
    if (const auto pid = parse_number<int>(name).value_or(0); pid > 0)
      pids.push_back(pid);
  return pids;
}

std::vector<ProcessEntries> read_processes(System& system, const std::vector<int>& pids,
                                           const std::vector<EntryQuery>& queries, std::chrono::milliseconds deadline) {
  EntryRequest request{{}, deadline}, open_files = request;
  for (const int pid : pids)
    for (const auto& query : queries)
      request.queries.emplace_back(query).path = in_proc(pid, query.path);
  auto answers = system.entries(request);
  for (const auto& answer : answers)
    for (const auto& name : answer.names)
      open_files.queries.push_back({.path = join_path(answer.path, name)});
  auto links = system.entries(open_files);
  std::vector<ProcessEntries> processes;
  auto answer = answers.begin();
  auto link = links.begin();
  for (const int pid : pids) {
    auto& process = processes.emplace_back(ProcessEntries{pid, {}, {}});
    for (std::size_t i = 0; i < queries.size(); ++i, ++answer) {
      const auto open = static_cast<std::ptrdiff_t>(answer->names.size());
      process.descriptors.insert(process.descriptors.end(), std::move_iterator(link), std::move_iterator(link + open));
      link += open;
      process.entries.push_back(std::move(*answer));
    }
  }
  return processes;
}

std::vector<FoundProcess> find_processes(System& system, const std::vector<std::string_view>& names, Namespace same,
                                         std::chrono::milliseconds deadline) {
  const std::string space = same == Namespace::mount ? "ns/mnt" : "ns/net";
  const auto own = system.entry({.path = "/proc/self/" + space}, deadline).link_target;
  std::vector<FoundProcess> found;
  for (const auto& process : read_processes(system, process_ids(system, deadline),
                                            {{.path = "comm", .read_bytes = k_comm_limit}}, deadline)) {
    const std::string name(trim(process.entries[0].content));
    if (std::ranges::find(names, name) != names.end() &&
        system.entry({.path = in_proc(process.pid, space)}, deadline).link_target == own)
      found.push_back({process.pid, name});
  }
  return found;
}

std::optional<std::uint64_t> process_start(const Files& files, int pid) {
  return read_stat(files, pid, k_start_field);
}

std::chrono::seconds age_of_process(std::string_view stat, std::string_view uptime) {
  const auto start = find_in_stat(stat, k_start_field);
  const auto now = parse_number<std::uint64_t>(uptime.substr(0, uptime.find('.')));
  const auto ticks = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  return std::chrono::seconds(start && now ? *now - std::min(*now, *start / ticks) : 0);
}

std::optional<bool> has_ended(const Files& files, int pid, std::uint64_t start) {
  if (const auto seen = process_start(files, pid))
    return *seen != start;
  // kill(2) knows every process, also one that proc(5) hides from this user.
  return ::kill(pid, 0) != 0 && errno == ESRCH ? std::optional(true) : std::nullopt;
}

int process_parent(const Files& files, int pid) {
  return static_cast<int>(read_stat(files, pid, 4).value_or(0));
}

} // namespace sharefs::sys

#include "sys/find_processes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::sys {
namespace {

constexpr std::size_t k_comm_limit = 64;

std::string in_proc(int pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

} // namespace

std::vector<int> process_ids(System& system, std::chrono::milliseconds deadline) {
  std::vector<int> pids;
  for (const auto& name : system.entry({.path = "/proc", .list = true}, deadline).names)
    if (const auto pid = parse_number<int>(name).value_or(0); pid > 0)
      pids.push_back(pid);
  return pids;
}

std::vector<FoundProcess> find_processes(System& system, const std::vector<std::string_view>& names, Namespace same,
                                         std::chrono::milliseconds deadline) {
  const auto pids = process_ids(system, deadline);
  EntryRequest request{{}, deadline};
  for (const int pid : pids)
    request.queries.push_back({.path = in_proc(pid, "comm"), .read_bytes = k_comm_limit});
  const auto answers = system.entries(request);
  const std::string space = same == Namespace::mount ? "ns/mnt" : "ns/net";
  EntryRequest spaces{{{.path = "/proc/self/" + space}}, deadline};
  std::vector<FoundProcess> named, found;
  for (std::size_t index = 0; index < pids.size() && index < answers.size(); ++index) {
    const auto name = trim(answers[index].content);
    if (std::ranges::find(names, name) == names.end())
      continue;
    named.push_back({pids[index], std::string(name)});
    spaces.queries.push_back({.path = in_proc(pids[index], space)});
  }
  if (named.empty())
    return {};
  const auto where = system.entries(spaces);
  for (std::size_t index = 0; index < named.size() && index + 1 < where.size(); ++index)
    if (where[index + 1].link_target == where.front().link_target)
      found.push_back(std::move(named[index]));
  return found;
}

} // namespace sharefs::sys

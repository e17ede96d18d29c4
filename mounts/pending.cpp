#include "mounts/pending.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_command_name_bytes = 64;
constexpr std::size_t k_command_line_bytes = 8192;

bool is_mount_program(std::string_view comm) {
  constexpr std::array<std::string_view, 2> k_names{"mount.nfs", "mount.nfs4"};
  return std::find(k_names.begin(), k_names.end(), comm) != k_names.end();
}

} // namespace

std::optional<PendingMount> parse_mount_command(int pid, const std::string& command_line) {
  const auto words = split(command_line, '\0');
  PendingMount pending;
  pending.pid = pid;
  std::size_t operands = 0;
  for (std::size_t index = 1; index < words.size(); ++index) {
    const auto& word = words[index];
    if (word == "-o" && index + 1 < words.size()) {
      pending.options = words[++index];
    } else if (!word.empty() && !word.starts_with('-')) {
      (operands == 0 ? pending.source : pending.target) = operands == 0 ? word : normalize_path(word);
      ++operands;
    }
  }
  if (operands < 2)
    return std::nullopt;
  return pending;
}

std::vector<int> process_ids(sys::System& system, std::chrono::milliseconds deadline) {
  std::vector<int> pids;
  const auto answers = system.entries({{{.path = "/proc", .list = true}}, deadline});
  for (const auto& entry : answers) {
    for (const auto& name : entry.names) {
      int pid = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (error == std::errc() && end == name.data() + name.size() && pid > 0)
        pids.push_back(pid);
    }
  }
  return pids;
}

std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline) {
  sys::EntryRequest names{{{.path = "/proc/self/ns/mnt"}}, deadline};
  const auto pids = process_ids(system, deadline);
  for (const int pid : pids)
    names.queries.push_back({.path = fmt::format("/proc/{}/comm", pid), .read_bytes = k_command_name_bytes});
  const auto answers = system.entries(names);
  sys::EntryRequest details{{}, deadline};
  std::vector<int> found;
  for (std::size_t index = 0; index < pids.size() && index + 1 < answers.size(); ++index) {
    if (!is_mount_program(trim(answers[index + 1].content)))
      continue;
    found.push_back(pids[index]);
    details.queries.push_back({.path = fmt::format("/proc/{}/ns/mnt", pids[index])});
    details.queries.push_back(
        {.path = fmt::format("/proc/{}/cmdline", pids[index]), .read_bytes = k_command_line_bytes});
  }
  if (found.empty())
    return {};
  std::vector<PendingMount> pending;
  const auto lines = system.entries(details);
  for (std::size_t index = 0; index < found.size() && 2 * index + 1 < lines.size(); ++index) {
    if (lines[2 * index].link_target != answers.front().link_target)
      continue;
    if (auto one = parse_mount_command(found[index], lines[2 * index + 1].content))
      pending.push_back(std::move(*one));
  }
  return pending;
}

} // namespace sharefs::mounts

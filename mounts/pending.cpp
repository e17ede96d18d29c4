#include "mounts/pending.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_command_line_bytes = 8192;

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

std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline) {
  const auto found = sys::find_processes(system, {"mount.nfs", "mount.nfs4"}, sys::Namespace::mount, deadline);
  if (found.empty())
    return {};
  sys::EntryRequest details{{}, deadline};
  for (const auto& process : found)
    details.queries.push_back(
        {.path = fmt::format("/proc/{}/cmdline", process.pid), .read_bytes = k_command_line_bytes});
  std::vector<PendingMount> pending;
  const auto lines = system.entries(details);
  for (std::size_t index = 0; index < found.size() && index < lines.size(); ++index)
    if (auto one = parse_mount_command(found[index].pid, lines[index].content))
      pending.push_back(std::move(*one));
  return pending;
}

} // namespace sharefs::mounts

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

std::vector<int> process_ids(const std::vector<std::string>& names) {
  std::vector<int> pids;
  for (const auto& name : names) {
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid > 0)
      pids.push_back(pid);
  }
  return pids;
}

std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline) {
  const auto names = system.inspect({{{.path = "/proc", .list = true}}, deadline, std::nullopt});
  if (!names || names->empty())
    return {};
  const auto pids = process_ids(names->front().entries);
  sys::InspectRequest request{{}, deadline, std::nullopt};
  for (const int pid : pids)
    request.queries.push_back({.path = fmt::format("/proc/{}/comm", pid), .read_bytes = k_command_name_bytes});
  request.queries.push_back({.path = "/proc/self/ns/mnt"});
  const auto comms = system.inspect(request);
  if (!comms || comms->size() != request.queries.size())
    return {};

  std::vector<PendingMount> found;
  for (std::size_t index = 0; index < pids.size(); ++index) {
    if (!is_mount_program(trim((*comms)[index].content)))
      continue;
    const auto directory = fmt::format("/proc/{}", pids[index]);
    const auto details = system.inspect(
        {{{.path = directory + "/ns/mnt"}, {.path = directory + "/cmdline", .read_bytes = k_command_line_bytes}},
         deadline,
         std::nullopt});
    if (!details || details->size() != 2 || (*details)[0].link_target != comms->back().link_target)
      continue;
    if (auto pending = parse_mount_command(pids[index], (*details)[1].content))
      found.push_back(std::move(*pending));
  }
  return found;
}

} // namespace sharefs::mounts

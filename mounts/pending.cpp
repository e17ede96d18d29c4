#include "mounts/pending.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/options.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_command_line_bytes = 8192, k_stat_bytes = 4096, k_uptime_bytes = 64;
/// A mount in the foreground that takes longer than this waits for its server.
constexpr std::chrono::seconds k_usual_mount{30};

} // namespace

bool PendingMount::keeps_trying() const {
  return age > k_usual_mount || value_of(parse_options({options}), "ground") == "bg";
}

std::string cure_of(const PendingMount& pending) {
  return pending.keeps_trying() ? fmt::format("end it: kill {}", pending.pid)
                                : "wait: it has just begun; `sharefs status` shows when it has ended";
}

std::optional<MountCommand> read_mount_command(std::span<const std::string> words) {
  constexpr std::array<std::string_view, 5> k_with_argument{"-t", "--types", "-o", "--options", "-O"};
  MountCommand command;
  if (const auto name = words.empty() ? "" : base_name(words[0]); name.starts_with("mount."))
    command.type = name.substr(std::string_view("mount.").size());
  std::vector<std::string> operands;
  for (std::size_t i = 1; i < words.size(); ++i) {
    auto option = words[i];
    std::string value;
    if (std::ranges::count(k_with_argument, option) > 0) {
      if (++i < words.size())
        value = words[i];
    } else if (option.starts_with("--") && option.find('=') != std::string::npos) {
      value = option.substr(option.find('=') + 1);
      option.resize(option.find('='));
    } else if (option.starts_with("-t") || option.starts_with("-o")) {
      value = option.substr(2);
      option.resize(2);
    } else if (!option.empty() && !option.starts_with('-')) {
      operands.push_back(option);
    }
    if (option == "-t" || option == "--types")
      command.type = value;
    else if (option == "-o" || option == "--options")
      command.options = value;
  }
  if (operands.size() < 2)
    return std::nullopt;
  command.source = operands[0];
  command.target = operands[1];
  return command;
}

std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline) {
  const auto found = sys::find_processes(system, {"mount.nfs", "mount.nfs4"}, sys::Namespace::mount, deadline);
  if (found.empty())
    return {};
  std::vector<int> pids;
  for (const auto& process : found)
    pids.push_back(process.pid);
  const auto uptime = system.entry({.path = "/proc/uptime", .read_bytes = k_uptime_bytes}, deadline).content;
  std::vector<PendingMount> pending;
  for (const auto& process : sys::read_processes(
           system, pids,
           {{.path = "cmdline", .read_bytes = k_command_line_bytes}, {.path = "stat", .read_bytes = k_stat_bytes}},
           deadline))
    if (const auto one = read_mount_command(split(process.entries[0].content, '\0')))
      pending.push_back({process.pid, one->source, normalize_path(one->target), one->options,
                         sys::age_of_process(process.entries[1].content, uptime)});
  return pending;
}

} // namespace sharefs::mounts

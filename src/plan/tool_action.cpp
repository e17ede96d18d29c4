// RunTool: a program of the system, by System::run.
#include "base/text.hpp"
#include "plan/perform.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::plan {

namespace {

/// The package that contains a program: its name in Debian and in the RHEL family.
struct Provider {
  std::string_view program, debian, rhel;
};
constexpr std::array<Provider, 7> k_providers{{{"exportfs", "nfs-kernel-server", "nfs-utils"},
                                               {"rpc.nfsd", "nfs-kernel-server", "nfs-utils"},
                                               {"rpc.mountd", "nfs-kernel-server", "nfs-utils"},
                                               {"nfsdcld", "nfs-kernel-server", "nfs-utils"},
                                               {"rpc.statd", "nfs-common", "nfs-utils"},
                                               {"rpcbind", "rpcbind", "rpcbind"},
                                               {"systemctl", "systemd", "systemd"}}};

constexpr std::size_t k_most_lines = 10; ///< how many lines of a tool's output a message shows

std::string install_hint(const std::string& program) {
  const auto name = program.substr(program.rfind('/') + 1); // npos + 1 is 0
  const auto* found = std::ranges::find(k_providers, name, &Provider::program);
  if (found == k_providers.end())
    return "install it, or add its directory to PATH";
  return fmt::format("install it: `apt install {}` (Debian, Ubuntu) or `dnf install {}` (RHEL, Fedora)", found->debian,
                     found->rhel);
}

/// Returns the first lines of the tool's output that are not empty, standard error first.
std::vector<std::string> output_lines(const sys::Completed& completed) {
  std::vector<std::string> lines;
  for (const auto* stream : {&completed.err, &completed.out})
    for (const auto& line : split_lines(*stream))
      if (!trim(line).empty() && lines.size() < k_most_lines)
        lines.push_back(to_utf8(trim(line)));
  return lines;
}

} // namespace

Result<Acted> act(const RunTool& action, sys::System& system, Phase phase) {
  if (action.argv.empty())
    return fail(ErrorCode::failed, "a step names no program to run");
  if (phase == Phase::check)
    return Outcome::done;
  sys::Command command;
  command.argv = action.argv;
  command.program = action.program;
  command.deadline = action.deadline;
  if (action.actor)
    command.as = action.actor->user;
  const auto completed = system.run(command);
  if (!completed) {
    auto error = completed.error();
    if (error.code == ErrorCode::not_found && error.hint.empty())
      error.hint = install_hint(action.argv.front());
    return fail(std::move(error));
  }
  auto lines = output_lines(*completed);
  const bool accepted =
      !completed->timed_out && std::ranges::find(action.accept, completed->exit_code) != action.accept.end();
  if (accepted && !(action.silent && !lines.empty()))
    return Outcome::done;
  auto message = "`" + shell_join(action.argv) + "`";
  if (completed->timed_out)
    message += " did not end within " + format_duration(action.deadline / std::chrono::microseconds(1));
  else if (accepted)
    message += " found a fault";
  else
    message += fmt::format(" failed with exit code {}", completed->exit_code);
  if (!lines.empty()) {
    message += ": " + lines.front();
    lines.erase(lines.begin());
  }
  return fail(completed->timed_out ? ErrorCode::timeout : ErrorCode::failed, std::move(message), {}, join(lines, "\n"));
}

} // namespace sharefs::plan

#include "sys/remote.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::sys {
namespace {

constexpr std::chrono::seconds k_connect{5};
/// Nothing of the user's configuration that would ask, open a terminal or a forwarding, or leave a connection behind.
constexpr auto k_settings = {"BatchMode=yes",   "ConnectTimeout=5", "ServerAliveInterval=2",  "ServerAliveCountMax=2",
                             "LogLevel=ERROR",  "RequestTTY=no",    "RemoteCommand=none",     "ControlMaster=no",
                             "ForwardAgent=no", "ForwardX11=no",    "ClearAllForwardings=yes"};

/// The last line with anything in it.
std::string last_line(std::string_view text) {
  std::string last;
  for (const auto& line : split_lines(text))
    if (const auto word = trim(line); !word.empty())
      last = word;
  return visible(last);
}

/// ssh would take the other ones for an option, or they could be no host.
Result<void> check_remote_host(const std::string& host) {
  const auto plain = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           std::string_view("._-@:%").find(byte) != std::string_view::npos;
  };
  if (!host.empty() && host.front() != '-' && std::ranges::all_of(host, plain))
    return {};
  return fail(ErrorCode::usage, fmt::format("`{}` is no host for ssh", visible(host)),
              "give a name as for `ssh NAME`: node2, or root@node2");
}

} // namespace

Result<std::string> ask_remote(System& system, const RemoteRequest& request) {
  if (auto checked = check_remote_host(request.host); !checked)
    return fail(checked.error());
  Command command;
  command.argv = {"ssh"};
  for (const auto* setting : k_settings)
    command.argv.insert(command.argv.end(), {"-o", setting});
  command.argv.insert(command.argv.end(),
                      {"--", request.host, fmt::format("timeout -k 1 {} sh", request.deadline.count())});
  command.input = request.script;
  command.deadline = request.deadline + k_connect + std::chrono::seconds(2);
  const auto completed = system.run(command);
  if (!completed)
    return fail(completed.error());
  if (completed->ok())
    return completed->out;
  const auto said = last_line(completed->err);
  constexpr int k_timed_out = 124; // timeout(1)
  if (completed->timed_out || completed->exit_code == k_timed_out)
    return fail(ErrorCode::timeout, fmt::format("no answer within {} s", request.deadline.count()));
  return fail(ErrorCode::failed, !said.empty() ? said : fmt::format("ssh ended with code {}", completed->exit_code));
}

} // namespace sharefs::sys

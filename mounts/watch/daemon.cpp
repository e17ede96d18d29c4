#include "mounts/watch/daemon.hpp"

#include "base/path.hpp"

#include <array>

namespace sharefs::mounts::watch {

namespace {

/// In the order in which systemd searches them.
constexpr std::array k_unit_directories{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"};
constexpr const char* k_wants = "/etc/systemd/system/multi-user.target.wants";
constexpr std::chrono::milliseconds k_ask_deadline{10'000}, k_start_deadline{60'000};

plan::RunTool systemctl_step(const char* verb, const char* opposite, bool now) {
  const auto words = [&](const char* one) {
    return now ? Argv{"systemctl", one, "--now", k_watch_unit} : Argv{"systemctl", one, k_watch_unit};
  };
  return {.argv = words(verb), .undo = words(opposite), .deadline = k_start_deadline};
}

} // namespace

std::string find_unit_file(sys::System& system) {
  for (const auto* directory : k_unit_directories)
    if (auto path = join_path(directory, k_watch_unit);
        system.entry({.path = path, .follow = true}).kind == sys::EntryKind::file)
      return path;
  return "";
}

Daemon probe_daemon(sys::System& system) {
  Daemon daemon;
  daemon.systemd = system.identity().systemd;
  daemon.unit_file = find_unit_file(system);
  daemon.enabled = system.entry({.path = join_path(k_wants, k_watch_unit)}).exists();
  if (daemon.systemd && !daemon.unit_file.empty()) {
    const auto answer =
        system.run({.argv = {"systemctl", "is-active", "--quiet", k_watch_unit}, .deadline = k_ask_deadline});
    daemon.active = answer && answer->ok();
  }
  return daemon;
}

plan::Plan plan_daemon(const Daemon& daemon, bool wanted) {
  plan::Plan plan;
  if (!daemon.systemd || daemon.unit_file.empty())
    return plan;
  constexpr const char* k_group = "daemon";
  if (!wanted && (daemon.enabled || daemon.active))
    plan.add(k_group, "it looks after the mounts no longer", systemctl_step("disable", "enable", true));
  else if (wanted && !daemon.enabled)
    plan.add(k_group, "it looks after the mounts, now and after each boot",
             systemctl_step("enable", "disable", !daemon.active));
  else if (wanted && !daemon.active)
    plan.add(k_group, "it looks after the mounts", systemctl_step("start", "stop", false));
  return plan;
}

} // namespace sharefs::mounts::watch

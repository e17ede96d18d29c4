#include "mounts/diagnose.hpp"

#include "mounts/plan_mount.hpp"
#include "mounts/verify.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

bool is_to_mount(const MountState& state) {
  return state.wanted && !state.point.here && state.health == Health::missing;
}

/// True for a mount of NFS 3 whose locks the server keeps.
bool needs_statd(const MountState& state) {
  if (!state.mounted() || state.mount->fs_type != "nfs")
    return false;
  const auto shown = shown_settings(*state.mount);
  const auto local = value_of(shown, "local_lock");
  return major_version(version_of(shown)) == 3 && find_setting(shown, "lock") == nullptr &&
         (local.empty() || local == "none");
}

} // namespace

ClientFacts read_client_facts(sys::System& system, const Observation& seen, std::chrono::milliseconds deadline) {
  ClientFacts facts;
  if (std::ranges::any_of(seen.states, is_to_mount)) {
    const auto programs = system.entries(
        {{{.path = "/sbin/mount.nfs", .follow = true}, {.path = "/usr/sbin/mount.nfs", .follow = true}}, deadline});
    facts.mount_program =
        std::ranges::any_of(programs, [](const sys::Entry& one) { return one.kind != sys::EntryKind::missing; });
  }
  if (system.identity().uid == 0 && std::ranges::any_of(seen.states, needs_statd))
    facts.statd = !sys::find_processes(system, {"rpc.statd"}, sys::Namespace::network, deadline).empty();
  return facts;
}

Diagnoses diagnose_client(const Observation& seen, const ClientFacts& facts) {
  Diagnoses found;
  const auto missing = std::ranges::find_if(seen.states, is_to_mount);
  if (!facts.mount_program && missing != seen.states.end())
    found.push_back(
        about(missing->point, Severity::error, "SF246",
              "mount.nfs is not installed on this host, and nothing is mounted over NFS without it",
              "run `apt-get install nfs-common` (Debian, Ubuntu) or `dnf install nfs-utils` (RHEL, Fedora)"));
  const auto locked = std::ranges::find_if(seen.states, needs_statd);
  if (!facts.statd && locked != seen.states.end())
    found.push_back(about(
        locked->point, Severity::warning, "SF245",
        fmt::format("rpc.statd does not run on this host: programs get no locks on {} (NFS 3)", locked->point.target),
        "start it: `systemctl start rpc-statd`, or without systemd `rpc.statd`"));
  for (const auto& state : seen.states) {
    if (!state.wanted || !state.mounted() || !is_good(state.health))
      continue;
    for (auto& one : preflight(state.point, seen.server(state.point))) {
      if (one.severity != Severity::error)
        continue;
      one.severity = Severity::warning;
      one.message += "; what is mounted works, and could not be mounted again";
      found.push_back(std::move(one));
    }
  }
  return found;
}

Diagnoses diagnose_host(sys::System& system, const Observation& seen, const std::vector<std::string>& users,
                        std::chrono::milliseconds deadline) {
  auto found = diagnose(seen);
  append(found, diagnose_refusals(system, seen, users));
  auto missing = seen;
  std::erase_if(missing.states, [](const MountState& state) {
    return !state.wanted || state.health != Health::missing || state.point.is_in_place();
  });
  std::vector<MountPoint> wanted;
  for (const auto& state : missing.states)
    wanted.push_back(state.point);
  append(found, plan_mounts(missing, wanted).diagnoses);
  append(found, diagnose_client(seen, read_client_facts(system, seen, deadline)));
  return found;
}

} // namespace sharefs::mounts

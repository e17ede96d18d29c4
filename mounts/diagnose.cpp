#include "mounts/diagnose.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "mounts/compare.hpp"
#include "mounts/options.hpp"
#include "mounts/plan_mount.hpp"
#include "mounts/verify.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

namespace sharefs::mounts {

namespace {

/// Returns "sharefs VERB share", for the fix of a diagnosis.
std::string sharefs_command(std::string_view verb, const MountState& state) {
  return fmt::format("sharefs {} {}", verb, shell_quote(name_of(state.point)));
}

/// Returns the commands that unmount it, and that mount it again if it is in sharefs.yaml.
std::string mount_again(const MountState& state) {
  return sharefs_command("umount", state) + (state.wanted ? " && " + sharefs_command("mount", state) : "");
}

/// One diagnosis for all mounts of a server that hang: this one and `others`.
Diagnosis hung(const MountState& state, const sys::NfsProbe* server, std::size_t others = 0) {
  const auto& point = state.point;
  const auto* stage = server == nullptr ? nullptr : server->failing();
  auto message =
      fmt::format("{}{} ({})", point.target,
                  others == 0 ? " does not answer"
                              : " and " + count_of(others, "other mount") + " of " + point.server + " do not answer",
                  state.detail);
  if (server != nullptr && stage == nullptr)
    return about(point, Severity::error, "SF213", fmt::format("{}, although its server {} does", message, point.server),
                 "the client may be waiting for a lost connection or a server that has just come back: wait a minute, "
                 "and use --force only if it stays so",
                 others == 0 ? sharefs_command("recover", state) : "sharefs recover --all");
  std::string hint = "programs that wait go on by themselves when the server is back";
  if (stage != nullptr) {
    message +=
        fmt::format(", nor does its server {}, stage {}: {}", point.server, to_string(stage->stage), stage->detail);
    hint = (stage->hint.empty() ? "" : stage->hint + "; ") + hint;
  }
  return about(point, Severity::error, "SF212", message, hint, probe_command(point));
}

/// Returns the reason why the server would not let this host mount again what is mounted, in the version that the mount
/// has; nullopt if it would. The server may have changed since the mount was made.
std::optional<Diagnosis> find_refusal(const MountState& state, const sys::NfsProbe* server) {
  auto point = state.point;
  if (state.mounted())
    if (const auto version = version_of(shown_settings(*state.mount)); !version.empty())
      point.options = override_settings(point.options, parse_options({"vers=" + version}));
  const auto why = preflight(point, server);
  const auto cause = std::ranges::find(why, Severity::error, &Diagnosis::severity);
  return cause == why.end() ? std::nullopt : std::optional(*cause);
}

Diagnosis failed(const MountState& state, const sys::NfsProbe* server) {
  const auto cause = find_refusal(state, server);
  const bool known = cause.has_value();
  return about(state.point, Severity::error, "SF220",
               fmt::format("{} fails: {}{}", state.point.target, state.detail, known ? "; " + cause->message : ""),
               known ? cause->hint : "see the kernel log of this host and of the server: dmesg");
}

Diagnosis looped(const MountState& state, Severity severity) {
  return about(state.point, severity, "SF233",
               fmt::format("{} is mounted over NFS from this very host, which can hang server and clients for good",
                           state.point.target),
               "the server uses its own directory" +
                   std::string(state.point.is_in_place() ? "" : ", or binds it to another place"),
               mount_again(state));
}

/// Reports SF250: a directory of this host above the mount point keeps users out.
Diagnosis closed_above(const MountState& state, Severity severity) {
  return about(
      state.point, severity, "SF250",
      fmt::format("only root gets to {}: {} of this host is closed to all others", state.point.target,
                  state.closed_above),
      fmt::format("`chmod a+x {}` lets users pass, and does not let them list it", shell_quote(state.closed_above)));
}

Diagnoses diagnose_options(const MountState& state) {
  std::vector<Difference> faults, notes;
  for (const auto& one : state.differences)
    (one.fault ? faults : notes).push_back(one);
  Diagnoses found;
  if (!faults.empty())
    found.push_back(about(state.point, Severity::error, state.health == Health::read_only ? "SF216" : "SF209",
                          fmt::format("{} is mounted with {}", state.point.target, describe(faults)),
                          can_remount(faults) ? fmt::format("`sharefs mount {} --remount` changes it in place",
                                                            shell_quote(name_of(state.point)))
                                              : "a mount in use cannot change them: end what uses it, unmount it, and "
                                                "mount it again",
                          can_remount(faults) ? "" : mount_again(state)));
  if (!notes.empty())
    found.push_back(about(
        state.point, Severity::info, "SF209",
        fmt::format("{} is mounted with {}: the first mount of a server decides", state.point.target, describe(notes)),
        "unmount everything from this server to change it"));
  return found;
}

/// Returns the diagnoses that follow from the health of the mount.
Diagnoses diagnose_health(const MountState& state, const sys::NfsProbe* server) {
  const auto& point = state.point;
  const auto& target = point.target;
  switch (state.health) {
  case Health::healthy:
  case Health::autofs_idle:
  case Health::here:
    return {};
  case Health::looped:
    return {looped(state, Severity::error)};
  case Health::full:
    return {full(point, state.detail)};
  case Health::slow:
    return {about(point, Severity::warning, "SF214",
                  fmt::format("{} took {} to answer", target,
                              format_duration(state.space() != nullptr ? state.space()->latency.count() : 0)),
                  "check the load of the server and its disks, and the network")};
  case Health::hung:
    return {hung(state, server)};
  case Health::stale:
    return {about(point, Severity::error, "SF211",
                  fmt::format("{} is stale: the server no longer knows the directory that was mounted", target),
                  or_unmount(state, "it was removed, replaced or exported anew on the server; mounting again cures it"),
                  sharefs_command("recover", state))};
  case Health::denied: {
    if (!state.closed_above.empty())
      return {closed_above(state, Severity::error)};
    const auto cause = find_refusal(state, server);
    return {about(point, Severity::error, "SF215", fmt::format("the server refuses {}: {}", target, state.detail),
                  cause ? cause->hint
                        : "this host is no longer among the export's clients, or the directory above it is closed: run "
                          "`sharefs export --all` on the server; then the mount works again by itself",
                  probe_command(point, format_source(point.server, point.path)))};
  }
  case Health::read_only:
    return has_faults(state.differences) ? Diagnoses{} : Diagnoses{read_only(point, state.detail)};
  case Health::missing:
    if (point.is_in_place())
      return {about(point, Severity::error, "SF217",
                    fmt::format("this host is the server, and has no directory {}", target),
                    "is its disk mounted? a new directory is made by `sharefs export`")};
    return {about(point, Severity::error, "SF217", fmt::format("nothing is mounted on {}", target), "",
                  sharefs_command("mount", state))};
  case Health::wrong_source:
    return {about(point, Severity::error, "SF208",
                  fmt::format("{} is mounted from {}, not from {}", target, state.detail,
                              format_source(point.server, point.path)),
                  "it was left alone; unmount it first if it is not needed",
                  state.mounted() ? mount_again(state) : "")};
  case Health::backgrounding:
    if (!state.pending->keeps_trying())
      return {about(point, Severity::error, "SF218",
                    fmt::format("{} is not mounted yet; `mount.nfs` (pid {}) is mounting {}", target,
                                state.pending->pid, state.pending->source),
                    cure_of(*state.pending))};
    return {about(point, Severity::error, "SF218",
                  fmt::format("{} is not mounted; `mount.nfs` (pid {}) keeps trying {}", target, state.pending->pid,
                              state.pending->source),
                  fmt::format("its server did not answer when it was tried; end the process and mount again: kill {}",
                              state.pending->pid),
                  probe_command({.server = parse_source(state.pending->source).server,
                                 .options = parse_options({state.pending->options})}))};
  case Health::unknown:
    return {about(
        point, Severity::error, "SF231",
        fmt::format("{} could not be checked: {}", target, state.detail.empty() ? "it was not asked" : state.detail),
        "this host is short of processes, memory or descriptors: see `ulimit -a`")};
  case Health::failed:
    return {failed(state, server)};
  }
  return {};
}

/// Returns the diagnoses that follow from the entry in the mount table, and not from the health.
Diagnoses diagnose_mount(const MountState& state) {
  const auto& point = state.point;
  auto found = diagnose_options(state);
  if (!state.closed_above.empty() && state.health != Health::denied)
    found.push_back(closed_above(state, Severity::warning));
  if (point.here && !state.wanted)
    found.push_back(looped(state, Severity::warning));
  if (!state.moved_to.empty())
    found.push_back(about(
        point, Severity::warning, "SF232",
        fmt::format("{} leads to {} now, {} still uses another address", point.server, state.moved_to, point.target),
        "if the server has moved, mount it again", mount_again(state)));
  if (state.taken_over > 0)
    found.push_back(about(
        point, Severity::error, "SF247",
        fmt::format("another host has the same NFS 4 client name as this one, and has taken its place at {} {}: file "
                    "locks on {} exclude no other host, and files that are open can fail",
                    point.server, state.taken_over == 1 ? "once" : fmt::format("{} times", state.taken_over),
                    point.target),
        "give each host a name of its own (`hostnamectl set-hostname NAME`), or `options nfs nfs4_unique_id=NAME` in "
        "/etc/modprobe.d; then unmount all mounts of the server and mount them again, or boot"));
  if (state.stacked > 0)
    found.push_back(
        about(point, Severity::warning, "SF219",
              fmt::format("{} hides {} at the same place", point.target, count_of(state.stacked, "older NFS mount")),
              "programs that were started earlier may still use the hidden one", mount_again(state)));
  if (state.pending && state.health != Health::backgrounding)
    found.push_back(about(point, Severity::warning, "SF218",
                          fmt::format("`mount.nfs` (pid {}) is still trying to mount {} on {} and would hide what is "
                                      "there",
                                      state.pending->pid, state.pending->source, point.target),
                          cure_of(*state.pending)));
  return found;
}

} // namespace

std::string or_unmount(const MountState& state, const std::string& hint) {
  if (state.wanted)
    return hint;
  return fmt::format("{}{}`{}` takes it away if nobody needs it any more", hint, hint.empty() ? "" : "; ",
                     sharefs_command("umount", state));
}

Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server) {
  auto found = diagnose_health(state, server);
  append(found, diagnose_mount(state));
  return found;
}

Diagnosis full(const MountPoint& point, const std::string& detail) {
  return about(point, Severity::error, "SF230",
               fmt::format("{} is full{}", point.target, detail.empty() ? "" : ": " + detail),
               "the server's disk or a quota is used up: delete what is not needed, or enlarge it");
}

Diagnosis read_only(const MountPoint& point, const std::string& detail) {
  return about(point, Severity::error, "SF216", fmt::format("{} cannot be written: {}", point.target, detail),
               "the server exports it read-only, or its file system is");
}

Diagnoses diagnose(const Observation& seen) {
  std::map<std::string, std::size_t> hanging; // number of mounts that hang, by server_key()
  for (const auto& state : seen.states)
    hanging[server_key(state.point)] += state.health == Health::hung ? 1 : 0;
  Diagnoses all;
  for (const auto& state : seen.states) {
    const auto* server = seen.server(state.point);
    if (state.health != Health::hung)
      append(all, diagnose_health(state, server));
    else if (const auto count = std::exchange(hanging[server_key(state.point)], 0);
             count > 0) // one diagnosis for all of the server
      all.push_back(hung(state, server, count - 1));
    append(all, diagnose_mount(state));
  }
  return all;
}

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

/// True if mount.nfs is installed on this host.
bool has_mount_program(sys::System& system, std::chrono::milliseconds deadline) {
  const auto programs = system.entries(
      {{{.path = "/sbin/mount.nfs", .follow = true}, {.path = "/usr/sbin/mount.nfs", .follow = true}}, deadline});
  return std::ranges::any_of(programs, [](const sys::Entry& one) { return one.kind != sys::EntryKind::missing; });
}

} // namespace

Diagnoses diagnose_client(sys::System& system, const Observation& seen, std::chrono::milliseconds deadline) {
  Diagnoses found;
  const auto missing = std::ranges::find_if(seen.states, is_to_mount);
  if (missing != seen.states.end() && !has_mount_program(system, deadline))
    found.push_back(
        about(missing->point, Severity::error, "SF246",
              "mount.nfs is not installed on this host, and nothing is mounted over NFS without it",
              "run `apt-get install nfs-common` (Debian, Ubuntu) or `dnf install nfs-utils` (RHEL, Fedora)"));
  const auto locked = std::ranges::find_if(seen.states, needs_statd);
  if (locked != seen.states.end() && system.identity().uid == 0 &&
      sys::find_processes(system, {"rpc.statd"}, sys::Namespace::network, deadline).empty())
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
  append(found, plan_mounts(missing).diagnoses);
  append(found, diagnose_client(system, seen, deadline));
  return found;
}

} // namespace sharefs::mounts

#include "mounts/diagnose.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

/// "sharefs umount share && sharefs mount share", or only the first half for a mount that nobody configured.
std::string mount_again(const MountState& state) {
  const auto word = shell_quote(name_of(state.point));
  return state.wanted ? fmt::format("sharefs umount {0} && sharefs mount {0}", word)
                      : fmt::format("sharefs umount {}", word);
}

std::string recover(const MountState& state) {
  return "sharefs recover " + shell_quote(name_of(state.point));
}

Diagnosis hung(const MountState& state, const sys::NfsProbe* server) {
  const auto& point = state.point;
  const auto* stage = server == nullptr ? nullptr : server->failing();
  if (server != nullptr && stage == nullptr)
    return {
        Severity::error,
        "SF213",
        name_of(point),
        fmt::format("{} does not answer ({}), although its server {} does", point.target, state.detail, point.server),
        "the client may be waiting for a lost connection or a server that has just come back: wait a minute, and "
        "use --force only if it stays so",
        recover(state)};
  auto message = fmt::format("{} does not answer ({})", point.target, state.detail);
  if (stage != nullptr)
    message +=
        fmt::format(", nor does its server {}, stage {}: {}", point.server, to_string(stage->stage), stage->detail);
  return {Severity::error,
          "SF212",
          name_of(point),
          message,
          stage != nullptr && !stage->hint.empty()
              ? stage->hint + "; programs that wait go on by themselves when the server is back"
              : "programs that wait go on by themselves when the server is back",
          "sharefs probe " + shell_quote(point.server)};
}

Diagnosis wrong_source(const MountState& state) {
  const auto& point = state.point;
  return {Severity::error,
          "SF208",
          name_of(point),
          fmt::format("{} is mounted from {}, not from {}", point.target, state.detail,
                      format_source(point.server, point.path)),
          "it was left alone; unmount it first if it is not needed",
          state.mounted() ? mount_again(state) : ""};
}

Diagnosis backgrounding(const MountState& state) {
  const auto& point = state.point;
  return {Severity::error,
          "SF218",
          name_of(point),
          fmt::format("{} is not mounted; `mount.nfs` (pid {}) keeps trying {}", point.target, state.pending->pid,
                      state.pending->source),
          fmt::format("its server did not answer when it was tried; end the process and mount again: kill {}",
                      state.pending->pid),
          "sharefs probe " + shell_quote(parse_source(state.pending->source).server)};
}

Diagnoses options_of(const MountState& state) {
  std::vector<Difference> faults, notes;
  for (const auto& one : state.differences)
    (one.fault ? faults : notes).push_back(one);
  Diagnoses found;
  if (!faults.empty())
    found.push_back({Severity::error, state.health == Health::read_only ? "SF216" : "SF209", name_of(state.point),
                     fmt::format("{} is mounted with {}", state.point.target, describe(faults)),
                     "options of a mount in use are not changed; mount it again when no job needs it",
                     mount_again(state)});
  if (!notes.empty())
    found.push_back(
        {Severity::info, "SF209", name_of(state.point),
         fmt::format("{} is mounted with {}: the first mount of a server decides", state.point.target, describe(notes)),
         "unmount everything from this server to change it", ""});
  return found;
}

} // namespace

Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server) {
  const auto& point = state.point;
  Diagnoses found;
  switch (state.health) {
  case Health::healthy:
  case Health::autofs_idle:
    break;
  case Health::full:
    found.push_back(full(point, state.detail));
    break;
  case Health::slow:
    found.push_back({Severity::warning, "SF214", name_of(point),
                     fmt::format("{} took {} to answer", point.target,
                                 format_duration(state.space() != nullptr ? state.space()->latency.count() : 0)),
                     "check the load of the server and its disks, and the network", ""});
    break;
  case Health::hung:
    found.push_back(hung(state, server));
    break;
  case Health::stale:
    found.push_back(
        {Severity::error, "SF211", name_of(point),
         fmt::format("{} is stale: the server no longer knows the directory that was mounted", point.target),
         "it was removed, replaced or exported anew on the server; mounting again heals it", recover(state)});
    break;
  case Health::denied:
    found.push_back({Severity::error, "SF215", name_of(point),
                     fmt::format("the server refuses {}: {}", point.target, state.detail),
                     "this host is no longer among the export's clients, or the directory above it is closed: run "
                     "`sharefs export` on the server; the mount heals by itself",
                     "sharefs probe " + shell_quote(format_source(point.server, point.path))});
    break;
  case Health::read_only:
    if (!has_faults(state.differences))
      found.push_back(read_only(point, state.detail));
    break;
  case Health::missing:
    found.push_back({Severity::error, "SF217", name_of(point), fmt::format("nothing is mounted on {}", point.target),
                     "", "sharefs mount " + shell_quote(name_of(point))});
    break;
  case Health::wrong_source:
    found.push_back(wrong_source(state));
    break;
  case Health::backgrounding:
    found.push_back(backgrounding(state));
    break;
  case Health::unknown:
    found.push_back({Severity::error, "SF231", name_of(point),
                     fmt::format("{} could not be checked: {}", point.target,
                                 state.detail.empty() ? "it was not asked" : state.detail),
                     "this host is short of processes, memory or descriptors: see `ulimit -a`", ""});
    break;
  case Health::failed:
    found.push_back({Severity::error, "SF220", name_of(point), fmt::format("{} fails: {}", point.target, state.detail),
                     "see the kernel log of this host and of the server: dmesg", ""});
    break;
  }
  const auto options = options_of(state);
  found.insert(found.end(), options.begin(), options.end());
  if (!state.moved_to.empty())
    found.push_back(
        {Severity::warning, "SF232", name_of(point),
         fmt::format("{} leads to {} now, {} still uses another address", point.server, state.moved_to, point.target),
         "if the server has moved, mount it again", mount_again(state)});
  if (state.stacked > 0)
    found.push_back(
        {Severity::warning, "SF219", name_of(point),
         fmt::format("{} hides {} at the same place", point.target, count_of(state.stacked, "older NFS mount")),
         "programs that were started earlier may still use the hidden one", mount_again(state)});
  if (state.pending && state.health != Health::backgrounding)
    found.push_back({Severity::warning, "SF218", name_of(point),
                     fmt::format("`mount.nfs` (pid {}) is still trying to mount {} on {} and would hide what is there",
                                 state.pending->pid, state.pending->source, point.target),
                     fmt::format("end it: kill {}", state.pending->pid), ""});
  return found;
}

Diagnosis full(const MountPoint& point, const std::string& detail) {
  return {Severity::error,
          "SF230",
          name_of(point),
          fmt::format("{} is full{}", point.target, detail.empty() ? "" : ": " + detail),
          "the server's disk or a quota is used up: delete what is not needed, or give it more",
          ""};
}

Diagnosis read_only(const MountPoint& point, const std::string& detail) {
  return {Severity::error,
          "SF216",
          name_of(point),
          fmt::format("{} cannot be written: {}", point.target, detail),
          "the server exports it read-only, or its file system is",
          ""};
}

Diagnoses diagnose(const Observation& seen) {
  Diagnoses all;
  for (const auto& state : seen.states) {
    const auto found = diagnose(state, seen.server(state.point.server));
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

} // namespace sharefs::mounts

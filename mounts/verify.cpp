#include "mounts/verify.hpp"

#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr uid_t k_nobody = 65534;

bool is_read_only(const MountPoint& point) {
  const auto settings = parse_options(point.options);
  const auto* access = find_setting(settings, "access");
  return access != nullptr && access->value == "ro";
}

Diagnosis failure(const MountPoint& point, const sys::PathProbe& probe) {
  std::string hint = "run `sharefs status` for the state of the mount";
  if (probe.health == sys::PathHealth::full)
    hint = "the disk of the server or a quota is full";
  else if (probe.health == sys::PathHealth::read_only)
    hint = "the server exports it read-only, or its file system is";
  return {Severity::error,
          "SF228",
          handle(point),
          fmt::format("{} failed the test: {} ({})", point.target, probe.detail, to_string(probe.health)),
          hint,
          ""};
}

Diagnosis squashed(const MountPoint& point, const sys::PathProbe& probe) {
  return {Severity::warning,
          "SF227",
          handle(point),
          fmt::format("{} can be read, but root of this host may not write there ({}): the server maps root to nobody "
                      "(root_squash)",
                      point.target, probe.detail),
          "normal for a directory of root; give it a group by `access:` of its export, or test as a user",
          ""};
}

/// A read-only mount: statfs was answered, now the names of its directory.
std::optional<Diagnosis> cannot_list(sys::System& system, const MountPoint& point, std::chrono::milliseconds deadline) {
  const auto facts = system.inspect({{{.path = point.target, .follow = true, .list = true}}, deadline, std::nullopt});
  if (facts && facts->size() == 1 && facts->front().error_number == 0)
    return std::nullopt;
  const auto why = facts && facts->size() == 1 ? errno_text(facts->front().error_number)
                   : facts                     ? "no answer"
                                               : facts.error().message;
  return Diagnosis{Severity::error,
                   "SF228",
                   handle(point),
                   fmt::format("{} cannot be read: {}", point.target, why),
                   "run `sharefs status` for the state of the mount",
                   ""};
}

/// Root was refused: once more as somebody who may.
std::optional<std::pair<sys::User, sys::PathProbe>> write_as_other(sys::System& system, const MountPoint& point,
                                                                   std::chrono::milliseconds deadline) {
  const auto facts = system.inspect({{{.path = point.target, .follow = true}}, deadline, std::nullopt});
  if (!facts || facts->size() != 1)
    return std::nullopt;
  const auto user = likely_writer(facts->front());
  if (!user)
    return std::nullopt;
  const auto probes = system.probe_paths({{point.target, deadline, true, user}});
  if (probes.size() != 1)
    return std::nullopt;
  return std::pair{*user, probes.front()};
}

} // namespace

std::optional<sys::User> likely_writer(const sys::PathFact& directory) {
  constexpr std::uint32_t k_owner = 0300, k_group = 0030, k_others = 0003; // write and search
  if (directory.uid != 0 && (directory.mode & k_owner) == k_owner)
    return sys::User{fmt::format("uid {}", directory.uid), directory.uid, directory.gid, {directory.gid}, ""};
  if (directory.gid != 0 && (directory.mode & k_group) == k_group)
    return sys::User{fmt::format("gid {}", directory.gid), k_nobody, directory.gid, {directory.gid}, ""};
  if ((directory.mode & k_others) == k_others)
    return sys::User{"nobody", k_nobody, k_nobody, {k_nobody}, ""};
  return std::nullopt;
}

Verification verify(sys::System& system, const std::vector<MountPoint>& points, std::chrono::milliseconds deadline) {
  Verification all;
  std::vector<sys::PathProbeRequest> requests;
  for (const auto& point : points)
    requests.push_back({point.target, deadline, !is_read_only(point), std::nullopt});
  const auto probes = requests.empty() ? std::vector<sys::PathProbe>() : system.probe_paths(requests);
  const bool root = system.identity().uid == 0;
  for (std::size_t index = 0; index < probes.size() && index < points.size(); ++index) {
    const auto& point = points[index];
    const auto& probe = probes[index];
    Verified verified{point.target, false, false, "", probe.latency};
    if (probe.health == sys::PathHealth::ok) {
      verified.written = requests[index].write_test;
      const auto unreadable = verified.written ? std::nullopt : cannot_list(system, point, deadline);
      verified.ok = !unreadable;
      if (unreadable)
        all.diagnoses.push_back(*unreadable);
    } else if (probe.health == sys::PathHealth::denied && root) {
      const auto second = write_as_other(system, point, deadline);
      verified.written = second && second->second.health == sys::PathHealth::ok;
      verified.ok = verified.written || !second || second->second.health == sys::PathHealth::denied;
      if (verified.written)
        verified.as = second->first.name;
      else
        all.diagnoses.push_back(verified.ok ? squashed(point, probe) : failure(point, second->second));
    } else {
      all.diagnoses.push_back(failure(point, probe));
    }
    all.results.push_back(std::move(verified));
  }
  return all;
}

std::string describe(const Verified& verified) {
  if (!verified.ok)
    return "the test failed";
  return fmt::format(
      "{} worked in {}{}", verified.written ? "write, fsync, read back and delete" : "reading",
      format_duration(verified.latency.count()),
      verified.as.empty() ? "" : fmt::format(" as {}, as the server squashes root (root_squash)", verified.as));
}

} // namespace sharefs::mounts

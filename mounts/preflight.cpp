#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

bool stage_is_ok(const sys::NfsProbe& probe, sys::ProbeStage stage) {
  return std::any_of(probe.stages.begin(), probe.stages.end(), [&](const sys::StageResult& one) {
    return one.stage == stage && one.outcome == sys::StageOutcome::ok;
  });
}

Diagnosis unreachable(const MountPoint& point, const sys::StageResult& stage) {
  auto message = fmt::format("server {} cannot be used, stage {}: {}", point.server, to_string(stage.stage),
                             stage.detail.empty() ? "failed" : stage.detail);
  if (!stage.cause.empty())
    message += fmt::format(" ({})", stage.cause);
  return {Severity::error, "SF201", handle(point), message, stage.hint, ""};
}

std::string offered(const sys::NfsProbe& probe) {
  if (probe.v3 && probe.v4)
    return "3 and 4";
  if (probe.v3 || probe.v4)
    return probe.v3 ? "3" : "4";
  return "none";
}

Diagnosis not_listed(const MountPoint& point, const sys::NfsProbe& probe, bool v3) {
  std::vector<std::string> directories;
  for (const auto& one : probe.exports)
    directories.push_back(one.directory);
  auto hint = did_you_mean_hint(point.path, directories);
  if (hint.empty())
    hint = directories.empty() ? "it exports nothing: run `sharefs export` on the server"
                               : "it exports " + join(directories, ", ");
  auto message = fmt::format("server {} does not list an export for {}", point.server, point.path);
  if (!v3)
    message += "; NFS 4 may still know it below its root";
  return {v3 ? Severity::error : Severity::warning, "SF202", handle(point), message, hint, ""};
}

Diagnosis denied(const MountPoint& point, const sys::NfsProbe& probe, const sys::ExportAccess& access) {
  std::string clients;
  for (const auto& one : probe.exports)
    if (is_under(point.path, one.directory) && !one.clients.empty())
      clients = " (allowed: " + join(one.clients, ", ") + ")";
  return {
      Severity::error,
      "SF203",
      handle(point),
      fmt::format("server {} does not let this host mount {}: {}{}", point.server, point.path, access.reason, clients),
      "add this host to the export's clients on the server and run `sharefs export` there",
      ""};
}

} // namespace

std::string handle(const MountPoint& point) {
  return point.name.empty() ? point.target : point.name;
}

Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server) {
  if (server == nullptr)
    return {};
  if (const auto* stage = server->failing())
    return {unreachable(point, *stage)};
  const auto version = version_of(parse_options(point.options));
  const int major = major_version(version);
  if (const auto* stage = server->failing(major))
    return {{Severity::error, "SF204", handle(point),
             fmt::format("server {} does not serve NFS {} (stage {}: {}); it offers {}", point.server, version,
                         to_string(stage->stage), stage->detail, offered(*server)),
             "ask for another version in `options:`, or none", ""}};
  const bool v3 = major == 3 || (major == 0 && !server->v4);
  const bool listed = std::any_of(server->exports.begin(), server->exports.end(),
                                  [&](const sys::ExportListing& one) { return is_under(point.path, one.directory); });
  const auto access = std::find_if(server->access.begin(), server->access.end(),
                                   [&](const sys::ExportAccess& one) { return one.directory == point.path; });
  if (access != server->access.end() && access->allowed)
    return {};
  if (stage_is_ok(*server, sys::ProbeStage::exports) && !listed)
    return {not_listed(point, *server, v3)};
  const bool refused = access != server->access.end() && access->reason.find("denied") != std::string::npos;
  if (refused)
    return {denied(point, *server, *access)};
  return {};
}

} // namespace sharefs::mounts

#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

Diagnosis unreachable(const MountPoint& point, const sys::StageResult& stage) {
  const bool is_known = stage.cause.empty() || stage.detail.find(stage.cause) != std::string::npos;
  return about(point, Severity::error, "SF201",
               fmt::format("server {} cannot be used, stage {}: {}{}", server_of(point), to_string(stage.stage),
                           stage.detail.empty() ? "failed" : stage.detail,
                           is_known ? "" : fmt::format(" ({})", stage.cause)),
               stage.hint);
}

std::string offered_versions(const sys::NfsProbe& probe) {
  if (!probe.v4)
    return probe.v3 ? "3" : "none";
  return fmt::format("{}4{}", probe.v3 ? "3 and " : "",
                     probe.v4_minor == 2 ? "" : fmt::format(" (up to 4.{})", probe.v4_minor));
}

/// True if `version` is a minor version of 4 that is newer than those of the server.
bool is_too_new(const std::string& version, const sys::NfsProbe& probe) {
  return probe.v4 && version.starts_with("4.") && version > fmt::format("4.{}", probe.v4_minor);
}

/// Returns the first names and the number of the others. A server may have an export for each of thousands of users.
std::string list_first(std::vector<std::string> names) {
  constexpr std::size_t k_most_named = 5;
  const auto count = names.size();
  names.resize(std::min(count, k_most_named));
  return join(names, ", ") + (count > k_most_named ? fmt::format(" and {} more", count - k_most_named) : "");
}

Diagnosis not_listed(const MountPoint& point, const sys::NfsProbe& probe, bool v3) {
  std::vector<std::string> directories;
  for (const auto& one : probe.exports)
    directories.push_back(one.directory);
  auto hint = did_you_mean_hint(point.path, directories);
  if (hint.empty())
    hint = directories.empty() ? "it exports nothing to this host: run `sharefs export --all` on the server"
                               : "it exports " + list_first(directories);
  auto message = fmt::format("server {} does not list an export for {}", server_of(point), point.path);
  // With fsid=0 the paths of NFS 4 begin at that export, but the list of exports shows the paths of the server.
  const bool may_be_known = !v3 && !probe.exports.empty();
  if (may_be_known)
    message += "; NFS 4 may still know it below its root";
  return about(point, may_be_known ? Severity::warning : Severity::error, "SF202", message, hint);
}

/// A reason why mountd refuses a path that it exports, and whether that forbids the mount.
struct Refusal {
  std::string_view words; ///< a part of ExportAccess::reason
  Severity severity;
  std::string_view message; ///< {0} server, {1} path, {2} the reason
  std::string_view hint;
};
constexpr std::string_view k_kerberos = "Kerberos";
constexpr auto k_refusals = std::to_array<Refusal>({
    // Without root sharefs cannot ask from a reserved port, but mount.nfs can, because it runs as root.
    {"`secure`", Severity::warning, "{0} does not let this host mount {1}: {2}", "run as root to be sure"},
    {"or it has no such directory", Severity::error, "{0} does not let this host mount {1}: {2}",
     "see on the server whether the directory is there; if it is, add this host to the export's clients and run "
     "`sharefs export --all` there"},
    {"access denied", Severity::error, "{0} does not let this host mount {1}: {2}",
     "add this host to the export's clients on the server and run `sharefs export --all` there"},
    {"no such directory", Severity::error, "{0} has no directory {1}",
     "make the directory on the server and run `sharefs export --all` there"},
    {"not a directory", Severity::error, "{1} of {0} is not a directory", "export the directory that it lies in"},
    // Perhaps the server only wants Kerberos, so this is a warning: mount.nfs finds that out.
    {"refuses this host's calls", Severity::warning, "{0} does not let this host mount {1}: {2}",
     "add this host to the export's clients on the server and run `sharefs export --all` there; or `sec=krb5`"},
    {k_kerberos, Severity::error, "server {0} exports {1} with Kerberos only", "add `sec=krb5` to `options:`"},
});

Diagnosis refused(const MountPoint& point, const sys::NfsProbe& probe, const sys::ExportAccess& access,
                  const Refusal& refusal) {
  auto message = fmt::format(fmt::runtime(refusal.message), server_of(point), point.path, access.reason);
  for (const auto& one : probe.exports)
    if (access.reason.find("denied") != std::string::npos && one.directory == point.path && !one.clients.empty())
      message += " (allowed: " + list_first(one.clients) + ")";
  return about(point, refusal.severity, "SF203", message, std::string(refusal.hint));
}

/// Reports a path that the server has in one version only.
Diagnosis other_path(const MountPoint& point, int version) {
  return about(point, Severity::error, "SF202",
               fmt::format("server {} has {} for NFS {} only; for the other version it has another path, or none",
                           server_of(point), point.path, version),
               version == 3 ? "ask for `vers=3` in `options:`; or write the path that NFS 4 has, which begins at the "
                              "export with `fsid=0` (NFS-Ganesha: at `Pseudo`)"
                            : "ask for `vers=4` in `options:`, or write the path that the list of exports has");
}

} // namespace

Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server) {
  if (server == nullptr)
    return {};
  if (const auto* stage = server->failing())
    return {unreachable(point, *stage)};
  const auto& settings = point.options;
  const auto version = version_of(settings);
  const int major = major_version(version);
  const bool unknown = (major == 3 && server->v3_unknown) || (major == 4 && server->v4_unknown);
  if (const auto* stage = server->failing(major)) {
    const auto what = unknown ? "did not answer for NFS" : "does not serve NFS";
    // Version 3 may be served, and its mountd be out of reach.
    const bool is_served = major == 3 && server->v3;
    return {about(point, unknown ? Severity::warning : Severity::error, "SF204",
                  is_served ? fmt::format("NFS 3 cannot be mounted from server {} (stage {}: {})", server_of(point),
                                          to_string(stage->stage), stage->detail)
                            : fmt::format("server {} {} {} (stage {}: {}); it offers {}", server_of(point), what,
                                          version, to_string(stage->stage), stage->detail, offered_versions(*server)),
                  unknown                ? "it may be slow: try again with a longer --timeout"
                  : !stage->hint.empty() ? stage->hint
                                         : "ask for another version in `options:`, or for none")};
  }
  if (is_too_new(version, *server))
    return {about(point, Severity::error, "SF204",
                  fmt::format("server {} does not serve NFS {}; it offers {}", server_of(point), version,
                              offered_versions(*server)),
                  fmt::format("ask for `vers=4.{}` in `options:`, or for none", server->v4_minor))};
  const bool v3 = major == 3 || (major == 0 && !server->v4 && !server->v4_unknown);
  const auto access = std::ranges::find(server->access, point.path, &sys::ExportAccess::directory);
  const bool asked = access != server->access.end();
  if (asked && access->version != 0 && major != 0 && access->version != major)
    return {other_path(point, access->version)};
  if (asked && access->allowed)
    return {};
  const bool listed = std::ranges::any_of(
      server->exports, [&](const sys::ExportListing& one) { return is_under(point.path, one.directory); });
  const bool not_known = asked && access->reason == "no such export";
  if (!listed && (not_known || server->result_of(sys::ProbeStage::exports).outcome == sys::StageOutcome::ok))
    return {not_listed(point, *server, v3)};
  if (!asked)
    return {};
  for (const auto& refusal : k_refusals)
    if (access->reason.find(refusal.words) != std::string::npos) {
      const bool met = refusal.words == k_kerberos && value_of(settings, "sec").find("krb5") != std::string_view::npos;
      return met ? Diagnoses{} : Diagnoses{refused(point, *server, *access, refusal)};
    }
  return {};
}

} // namespace sharefs::mounts

#include "mounts/profiles.hpp"

#include "base/text.hpp"
#include "mounts/compare.hpp"
#include "mounts/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

struct Profile {
  std::string_view name;
  std::string_view options; ///< pinned options are added after these
  bool pins_version;        ///< add vers= and proto= that the server offers
  int connections;          ///< value of nconnect= for a server on another host; 0: not set
};
constexpr auto k_profiles = std::to_array<Profile>({
    // Programs wait for the server, so that no write is lost; all nodes use one version; set-uid files have no effect.
    {"safe", "rw,hard,nosuid,nodev", true, 4},
    // Exactly the options of the manual recipe.
    {"recipe", "rw,bg,soft,nolock", false, 0},
    // Read-only, with long caching: for directories whose content never changes.
    {"immutable", "ro,hard,nosuid,nodev,nocto,actimeo=600", true, 4},
});

/// Returns the pinned `vers=`, `proto=` and `nconnect=`. `proto=tcp` means IPv4 only (nfs(5)), so it depends on the
/// address by which the server lets this host mount `path`: its exports may name one address family only.
Settings pinned(const Profile& profile, const std::string& path, const sys::NfsProbe* server) {
  // When version 4 did not answer in time, pinning version 3 would be a guess.
  const bool known = server != nullptr && server->usable() && (server->v4 || (server->v3 && !server->v4_unknown));
  if (!profile.pins_version || !known)
    return {};
  const auto access = std::ranges::find(server->access, path, &sys::ExportAccess::directory);
  const bool lets_in = access != server->access.end() && !access->address.empty();
  const auto& address = lets_in ? access->address : server->address;
  const bool ipv6 = address.find(':') != std::string::npos;
  const bool is_only_3 = access != server->access.end() && access->version == 3;
  std::vector<std::string> words{
      server->v4 && !is_only_3 ? fmt::format("vers=4.{}", server->v4_minor) : "vers=3",
      ipv6 ? "proto=tcp6" : "proto=tcp",
  };
  if (profile.connections > 0)
    words.push_back(fmt::format("nconnect={}", profile.connections));
  return parse_options(words);
}

} // namespace

Result<MountPoint> decide(MountPoint point, const sys::NfsProbe* server) {
  const auto* const profile = std::ranges::find(k_profiles, point.profile, &Profile::name);
  if (profile == k_profiles.end()) {
    std::vector<std::string> names;
    for (const auto& one : k_profiles)
      names.emplace_back(one.name);
    return fail(ErrorCode::config,
                fmt::format("{}{}there is no mount profile `{}`", point.origin, point.origin.empty() ? "" : ": ",
                            point.profile),
                did_you_mean_hint(point.profile, names, "the profiles are " + join(names, ", ")));
  }
  auto settings = parse_options({std::string(profile->options)});
  if (!point.here)
    settings = override_settings(std::move(settings), pinned(*profile, point.path, server));
  point.options = override_settings(std::move(settings), point.options);
  return point;
}

std::vector<std::string> options_beside_safe(const sys::MountEntry& mount) {
  constexpr auto k_kernels_defaults =
      std::to_array<std::string_view>({"timeo=600", "retrans=2", "sec=sys", "relatime"});
  constexpr auto k_negotiated = std::to_array<std::string_view>({"rsize", "wsize", "nconnect"});
  // These are the options of `safe` for a server that offers version 4.
  const auto safe = parse_options({std::string(k_profiles.front().options), "vers=4.2", "proto=tcp", "exec"});
  std::vector<std::string> options;
  for (const auto& one : compare_options(safe, mount))
    if (one.fault) // compare_options() puts a default that mountinfo does not show in parentheses
      options.push_back(one.actual.starts_with('(') ? one.actual.substr(1, one.actual.size() - 2) : one.actual);
  const auto shown = shown_settings(mount);
  if (const auto* connections = find_setting(shown, "nconnect");
      connections == nullptr || connections->value != std::to_string(k_profiles.front().connections))
    options.push_back(connections == nullptr ? "nconnect=1" : connections->text);
  for (const auto& one : parse_options({remount_options(mount)}))
    if (find_setting(safe, one.key) == nullptr && std::ranges::count(k_kernels_defaults, one.text) == 0 &&
        std::ranges::count(k_negotiated, one.key) == 0)
      options.push_back(one.text);
  return options;
}

std::vector<std::string> options_beside_safe(const std::string& boot_options) {
  const auto asked = parse_options({boot_options});
  const auto has = [&](std::string_view key) { return value_of(asked, key) == "yes"; };
  const std::string silent = has("user") || has("users")    ? "nosuid,nodev,noexec"
                             : has("owner") || has("group") ? "nosuid,nodev"
                                                            : "suid,dev";
  std::vector<std::string> options;
  for (auto& setting : override_settings(parse_options({silent, "nconnect=1"}), for_mount(asked)))
    options.push_back(std::move(setting.text));
  return options;
}

std::vector<std::string> mount_notes(const MountPoint& point) {
  if (point.here)
    return {};
  auto lines = consequences(point.options);
  if (version_of(point.options).empty())
    lines.emplace_back("no version is pinned: server and client negotiate one, and with it what locks and owners mean");
  for (auto& line : lines)
    line = fmt::format("{}: {}", name_of(point), line);
  return lines;
}

} // namespace sharefs::mounts

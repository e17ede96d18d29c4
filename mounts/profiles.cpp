#include "mounts/profiles.hpp"

#include "base/text.hpp"
#include "mounts/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr auto k_profiles = std::to_array<Profile>({
    {"safe", "waits for the server, never loses a write, one version everywhere", "rw,hard", true, 4},
    {"recipe", "exactly the options of the manual recipe", "rw,bg,soft,nolock", false, 0},
    {"immutable", "read-only and cached for long: for directories whose content never changes",
     "ro,hard,nocto,actimeo=600", true, 4},
});

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

/// `vers=` and `proto=` as safe profiles pin them. `proto=tcp` stands for IPv4 only (nfs(5)).
Settings pinned(const Profile& profile, const ServerFacts& server) {
  if (!profile.pins_version || !server.known)
    return {};
  std::vector<std::string> words{server.v4 ? "vers=4.2" : "vers=3", server.ipv6 ? "proto=tcp6" : "proto=tcp"};
  if (profile.connections > 0 && !server.this_host)
    words.push_back(fmt::format("nconnect={}", profile.connections));
  return parse_options(words);
}

} // namespace

std::span<const Profile> profiles() {
  return k_profiles;
}

Result<Profile> find_profile(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& profile : k_profiles) {
    if (profile.name == name)
      return profile;
    names.emplace_back(profile.name);
  }
  const auto near = did_you_mean_hint(name, names);
  return fail(ErrorCode::config, fmt::format("there is no mount profile `{}`", name),
              near.empty() ? "the profiles are " + join(names, ", ") : near);
}

ServerFacts server_facts(const sys::NfsProbe& probe, const std::vector<std::string>& addresses) {
  ServerFacts facts;
  facts.known = probe.usable() && (probe.v3 || probe.v4);
  facts.v4 = probe.v4;
  facts.ipv6 = probe.address.find(':') != std::string::npos;
  facts.this_host =
      is_loopback(probe.address) || std::find(addresses.begin(), addresses.end(), probe.address) != addresses.end();
  return facts;
}

Result<MountPoint> decide(const MountRequest& request, const ServerFacts& server) {
  const auto profile = find_profile(request.profile);
  if (!profile) {
    auto error = profile.error();
    if (!request.origin.empty())
      error.message = request.origin + ": " + error.message;
    return fail(error);
  }
  const auto own = parse_options(request.options);
  auto pins = pinned(*profile, server);
  auto settings = override_settings(parse_options({std::string(profile->options)}), pins);
  settings = override_settings(std::move(settings), own);
  MountPoint point{request.name, request.server, request.path, request.target, {}, request.origin};
  for (const auto& setting : settings)
    point.options.push_back(setting.text);
  return point;
}

std::vector<std::string> notes_on(const MountPoint& point) {
  const auto settings = parse_options(point.options);
  auto lines = consequences(settings);
  if (version_of(settings).empty())
    lines.emplace_back("no version is pinned: server and client negotiate one, and with it what locks and owners mean");
  for (auto& line : lines)
    line = fmt::format("{}: {}", point.name.empty() ? point.target : point.name, line);
  return lines;
}

} // namespace sharefs::mounts

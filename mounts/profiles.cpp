#include "mounts/profiles.hpp"

#include "base/text.hpp"
#include "mounts/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

struct Profile {
  std::string_view name;
  std::string_view options; ///< before the pinned ones
  bool pins_version;        ///< adds vers= and proto= by what the server answers
  int connections;          ///< nconnect= to a server on another host; 0: none
};
constexpr auto k_profiles = std::to_array<Profile>({
    // Waits for the server, loses no write, one version everywhere; what users put there gives nobody privileges.
    {"safe", "rw,hard,nosuid,nodev", true, 4},
    // Exactly the options of the manual recipe.
    {"recipe", "rw,bg,soft,nolock", false, 0},
    // Read-only and cached for long: for directories whose content never changes.
    {"immutable", "ro,hard,nosuid,nodev,nocto,actimeo=600", true, 4},
});

/// `config` error with a "did you mean" hint.
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

ServerFacts server_facts(const sys::NfsProbe& probe, const std::vector<std::string>& addresses) {
  ServerFacts facts;
  facts.known = probe.usable() && (probe.v4 || (probe.v3 && !probe.v4_unknown));
  facts.v4 = probe.v4;
  facts.ipv6 = probe.address.find(':') != std::string::npos;
  facts.this_host =
      is_loopback(probe.address) || std::find(addresses.begin(), addresses.end(), probe.address) != addresses.end();
  return facts;
}

Result<MountPoint> decide(MountPoint point, const ServerFacts& server) {
  const auto profile = find_profile(point.profile);
  if (!profile) {
    auto error = profile.error();
    if (!point.origin.empty())
      error.message = point.origin + ": " + error.message;
    return fail(error);
  }
  auto settings = override_settings(parse_options({std::string(profile->options)}), pinned(*profile, server));
  point.options = override_settings(std::move(settings), point.options);
  return point;
}

std::vector<std::string> notes_on(const MountPoint& point) {
  auto lines = consequences(point.options);
  if (version_of(point.options).empty())
    lines.emplace_back("no version is pinned: server and client negotiate one, and with it what locks and owners mean");
  for (auto& line : lines)
    line = fmt::format("{}: {}", name_of(point), line);
  return lines;
}

} // namespace sharefs::mounts

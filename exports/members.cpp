#include "exports/plan_export.hpp"

#include "base/text.hpp"
#include "exports/server.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

constexpr std::size_t k_most_groups = 16; ///< in a credential of AUTH_SYS (RFC 5531, appendix A)
constexpr std::uint32_t k_all = 7;

} // namespace

Diagnoses diagnose_members(sys::System& system, const Request& request) {
  if (request.members.empty())
    return {};
  const bool manage_gids = nfs_conf_flag(system, "mountd", "manage-gids", false);
  std::map<std::string, Result<sys::User>> users;
  for (const auto& name : request.members)
    if (auto user = system.user(name); user || user.error().code == ErrorCode::not_found)
      users.emplace(name, std::move(user)); // the others have given no answer in time
  Diagnoses found;
  for (const auto& [directory, wanted] : request.access) {
    const bool has_more = ((wanted.mode >> 3U) & ~wanted.mode & k_all) != 0; // the group has rights that others lack
    if (wanted.kind != plan::DirectoryAccess::Kind::group || !has_more)
      continue;
    std::vector<std::string> unknown, outside, many;
    for (const auto& [name, user] : users) {
      if (manage_gids && !user)
        unknown.push_back(name);
      else if (manage_gids && std::ranges::count(user->groups, wanted.gid) == 0 && user->uid != 0)
        outside.push_back(name);
      else if (!manage_gids && user && user->groups.size() > k_most_groups)
        many.push_back(name);
    }
    const auto& subject = directory; // clang cannot capture a structured binding
    const auto add = [&](const std::vector<std::string>& names, const std::string& what, const std::string& hint) {
      if (!names.empty())
        found.push_back({Severity::warning, "SF156", subject,
                         fmt::format("{} {} {}", join(names, ", "), names.size() == 1 ? "is" : "are", what), hint, ""});
    };
    const std::string forget = "then `exportfs -f`: it would remember for up to 30 minutes what it knew before";
    add(unknown,
        fmt::format("unknown on this server, which goes by its own groups (manage-gids): no node lets them use "
                    "it as members of `{}`",
                    wanted.group),
        fmt::format("run `useradd -M -u UID -G {} {}` here, with the number that the nodes have, {}", wanted.group,
                    unknown.empty() ? "" : unknown.front(), forget));
    add(outside,
        fmt::format("not in `{}` on this server, which goes by its own groups (manage-gids), whatever the nodes "
                    "say",
                    wanted.group),
        fmt::format("run `usermod -aG {} {}` here, {}", wanted.group, outside.empty() ? "" : outside.front(), forget));
    add(many, "in more than 16 groups, of which a client sends 16: `" + wanted.group + "` may be none of them",
        "set `manage-gids=y` in [mountd] of /etc/nfs.conf, and run `systemctl restart nfs-mountd`");
  }
  return found;
}

} // namespace sharefs::exports

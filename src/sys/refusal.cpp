#include "sys/refusal.hpp"

#include "base/path.hpp"
#include "base/source.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::sys {

namespace {

constexpr std::size_t k_most_groups = 16; ///< the limit of AUTH_SYS (RFC 5531, appendix A)
constexpr std::uint32_t k_group_enters = 010, k_group_reads = 040, k_group_writes = 030, k_directory_others = 7;

/// Returns the group's name from /etc/group, or "gid N". No directory service is asked, because it may hang, and the
/// name is only for messages.
std::string name_of_group(const System& system, std::uint32_t gid) {
  const auto text = system.files().read_if_exists("/etc/group");
  for (const auto& line : split_lines(text && *text ? **text : ""))
    if (const auto fields = split(line, ':'); fields.size() > 2 && fields[2] == std::to_string(gid))
      return fields[0];
  return fmt::format("gid {}", gid);
}

/// True if the mode gives the user these rights only as a member of the directory's group.
bool needs_membership(const Entry& directory, const User& user, std::uint32_t needed) {
  return directory.kind == EntryKind::directory && directory.uid != user.uid &&
         std::ranges::count(user.groups, directory.gid) > 0 && (directory.mode & needed) == needed &&
         (directory.mode & (needed >> 3U) & k_directory_others) != needed >> 3U; // all other users lack the rights
}

/// Returns the directory where the server does not treat the user as a member of its group; nullptr if there is none.
const Entry* find_refusing(const std::vector<Entry>& way, const User& user, bool read_only) {
  for (std::size_t i = 0; i < way.size(); ++i) {
    const bool last = i + 1 == way.size();
    const bool closed = last ? way[i].error_number == EACCES : way[i + 1].error_number == EACCES;
    if (closed && needs_membership(way[i], user, last ? k_group_reads : k_group_enters))
      return &way[i];
    if (last && !read_only && !way[i].writable && needs_membership(way[i], user, k_group_writes))
      return &way[i];
  }
  return nullptr;
}

} // namespace

std::optional<Refusal> explain_refusal(System& system, const std::string& path, const User& user) {
  const auto self = system.identity().uid;
  const auto table = system.mounts();
  const auto* mount = table ? table->owner_of(path) : nullptr;
  if (user.uid == 0 || (self != 0 && self != user.uid) || mount == nullptr || !is_nfs(*mount) ||
      mount->super_options.find("sec=krb5") != std::string::npos)
    return std::nullopt;
  EntryRequest request;
  if (self != user.uid)
    request.as = user;
  for (auto at = path; is_under(at, mount->target); at = parent_path(at)) {
    request.queries.insert(request.queries.begin(), {.path = at, .list = at == path, .access = true});
    if (at == "/")
      break;
  }
  const auto way = system.entries(request);
  const bool read_only = option_value(mount->options + "," + mount->super_options, "ro").has_value();
  const auto* directory = find_refusing(way, user, read_only);
  if (directory == nullptr)
    return std::nullopt;
  const auto group = name_of_group(system, directory->gid);
  const auto server = parse_source(mount->source).server;
  auto hint =
      fmt::format("{} goes by its own groups: `useradd` or `usermod -aG {} {}` there, then `exportfs -f` there and "
                  "`echo 2 >/proc/sys/vm/drop_caches` here, for both remember, the server for up to 30 minutes",
                  server, group, user.name);
  if (user.groups.size() > k_most_groups)
    hint =
        fmt::format("{} is in {} groups, of which NFS carries {}: `manage-gids=y` in [mountd] of /etc/nfs.conf on {}, "
                    "and {} in `{}` there",
                    user.name, user.groups.size(), k_most_groups, server, user.name, group);
  return Refusal{fmt::format("{0} is in `{1}` here, and {2} does not let {0} use {3} as a member", user.name, group,
                             server, directory->path),
                 hint};
}

} // namespace sharefs::sys

#include "tree/attributes.hpp"

#include "sys/fs/extended_attributes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

namespace sharefs::tree {

namespace {

using sys::is_unsupported_attribute;
constexpr const char* k_acl = sys::k_acl_attribute;
constexpr const char* k_default_acl = sys::k_default_acl_attribute;
constexpr std::string_view k_foreign_acl = "system.nfs4_acl";
constexpr const char* k_capability = "security.capability";

bool is_copied(std::string_view name) {
  return name.starts_with("user.") || name == k_acl || name == k_default_acl;
}

bool is_mark_of_overlay(std::string_view name) {
  return name.starts_with("trusted.overlay.") || name.starts_with("user.overlay.");
}

} // namespace

mode_t Attributes::narrowed(mode_t mode) const {
  return mode & (~static_cast<mode_t>(S_IRWXG) | group);
}

bool has_capabilities(int fd) {
  return ::fgetxattr(fd, k_capability, nullptr, 0) >= 0 || !is_unsupported_attribute(errno);
}

tl::expected<Attributes, int> read_attributes(int fd, bool layer) {
  Attributes found;
  bool has_foreign_acl = false;
  const auto wanted = [&](std::string_view name) {
    has_foreign_acl = has_foreign_acl || name == k_foreign_acl;
    found.capability = found.capability || name == k_capability;
    return is_copied(name) || (layer && is_mark_of_overlay(name));
  };
  auto attributes = sys::read_extended_attributes(fd, wanted);
  if (!attributes)
    return tl::make_unexpected(attributes.error());
  for (auto& [name, value] : *attributes)
    if (layer && is_mark_of_overlay(name))
      found.opaque = found.opaque || (name.ends_with(".opaque") && value == "y");
    else
      found.values.emplace_back(name, std::move(value));
  struct stat status{};
  if (has_foreign_acl && ::fstat(fd, &status) == 0)
    found.group = (sys::mode_by_acl(fd, status.st_mode) & S_IRWXG) | (~status.st_mode & S_IRWXG);
  return found;
}

bool has_default_acl(int directory) {
  return ::fgetxattr(directory, k_default_acl, nullptr, 0) > 0;
}

mode_t mode_without_group(mode_t mode) {
  const mode_t others = (mode & S_IRWXO) << 3U;
  return (mode & ~static_cast<mode_t>(S_IRWXG | S_ISGID)) | (mode & S_IRWXG & others);
}

int set_attributes(int to, const struct stat& now, const struct stat& original, const Attributes& attributes,
                   bool inherited) {
  bool owner = true, group = true;
  const bool differs = now.st_uid != original.st_uid || now.st_gid != original.st_gid;
  if (differs && ::fchown(to, original.st_uid, original.st_gid) != 0) {
    if (errno != EPERM && errno != EINVAL &&
        !is_unsupported_attribute(errno)) // EINVAL: the user namespace does not map the id
      return errno;
    owner = false;
    group = now.st_gid == original.st_gid || ::fchown(to, static_cast<uid_t>(-1), original.st_gid) == 0;
  }
  bool has_acl = false;
  for (const auto& [name, value] : attributes.values) {
    const bool acl = name == k_acl || name == k_default_acl;
    if (acl && !owner) // the ACL has rights of the owner and the group, who are different now
      continue;
    if (::fsetxattr(to, name.c_str(), value.data(), value.size(), 0) == 0)
      has_acl = has_acl || name == k_acl;
    else if (!is_unsupported_attribute(errno))
      return errno;
  }
  if (inherited && !has_acl)
    ::fremovexattr(to, k_acl); // an error means that there is no ACL, or that ACLs are not supported
  // The group's bits of a mode with an ACL are the mask: without the ACL they would become rights of the group.
  const bool lost_acl =
      std::ranges::any_of(attributes.values, [](const auto& one) { return one.first == k_acl; }) && !has_acl;
  const mode_t mode = attributes.narrowed(original.st_mode & 07777U);
  const mode_t wanted = group && !lost_acl ? mode : mode_without_group(mode);
  const bool cleared = differs && (wanted & (S_ISUID | S_ISGID)) != 0; // chown(2) has cleared them
  if (((now.st_mode & 07777U) != wanted || cleared || inherited || has_acl) && ::fchmod(to, wanted) != 0)
    return errno;
  return 0;
}

int set_times(int directory, const char* name, const struct stat& original) {
  const std::array<timespec, 2> times{original.st_atim, original.st_mtim};
  const int done = name == nullptr ? ::futimens(directory, times.data())
                                   : ::utimensat(directory, name, times.data(), AT_SYMLINK_NOFOLLOW);
  return done == 0 ? 0 : errno;
}

bool stat_now(int directory, const char* name, struct stat& status) {
  struct statx now{};
  constexpr int k_flags = AT_STATX_FORCE_SYNC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
  if (::statx(directory, name, k_flags, STATX_BASIC_STATS, &now) != 0)
    return false;
  status = {};
  status.st_dev = ::makedev(now.stx_dev_major, now.stx_dev_minor);
  status.st_ino = now.stx_ino;
  status.st_mode = now.stx_mode;
  status.st_nlink = now.stx_nlink;
  status.st_rdev = ::makedev(now.stx_rdev_major, now.stx_rdev_minor);
  status.st_uid = now.stx_uid;
  status.st_gid = now.stx_gid;
  status.st_size = static_cast<off_t>(now.stx_size);
  status.st_blocks = static_cast<blkcnt_t>(now.stx_blocks);
  const auto time = [](const struct statx_timestamp& stamp) {
    return timespec{static_cast<time_t>(stamp.tv_sec), static_cast<long>(stamp.tv_nsec)};
  };
  status.st_atim = time(now.stx_atime);
  status.st_mtim = time(now.stx_mtime);
  status.st_ctim = time(now.stx_ctime);
  return true;
}

bool same_time(const struct stat& one, const struct stat& other) {
  return one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

bool same_state(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_mode == other.st_mode &&
         one.st_size == other.st_size && same_time(one, other) && one.st_ctim.tv_sec == other.st_ctim.tv_sec &&
         one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

} // namespace sharefs::tree

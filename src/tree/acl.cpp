#include "tree/acl.hpp"
#include "base/try.hpp"
#include "sys/process/fd.hpp"

#include <acl/libacl.h>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <sys/xattr.h>

namespace sharefs::tree {

namespace {

struct FreeAcl {
  void operator()(void* acl) const { ::acl_free(acl); }
};
using Acl = std::unique_ptr<std::remove_pointer_t<acl_t>, FreeAcl>;

std::string text_of_acl(acl_t acl) {
  const std::unique_ptr<char, FreeAcl> text(::acl_to_any_text(acl, nullptr, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS));
  return text ? text.get() : "";
}

} // namespace

bool supports_default_acls(int fd) {
  return ::getxattr(sys::by_descriptor(fd).c_str(), "system.posix_acl_default", nullptr, 0) >= 0 || errno == ENODATA;
}

Result<std::string> read_acl(int fd, acl_type_t type, const std::string& path) {
  const auto name = sys::by_descriptor(fd);
  const char* attribute = type == ACL_TYPE_DEFAULT ? "system.posix_acl_default" : "system.posix_acl_access";
  if (::getxattr(name.c_str(), attribute, nullptr, 0) < 0)
    return errno == ENODATA || errno == ENOTSUP || errno == ENOSYS ? Result<std::string>(std::string())
                                                                   : fail(errno_error(errno, path));
  const Acl acl(::acl_get_file(name.c_str(), type));
  if (!acl)
    return fail(errno_error(errno, path));
  if (::acl_entries(acl.get()) == 0 || (type == ACL_TYPE_ACCESS && ::acl_equiv_mode(acl.get(), nullptr) == 0))
    return std::string();
  auto text = text_of_acl(acl.get());
  return text.empty() ? fail(errno_error(errno, path)) : Result<std::string>(std::move(text));
}

Result<void> write_acl(int fd, acl_type_t type, const std::string& path, const std::string& text) {
  const auto name = sys::by_descriptor(fd);
  if (text.empty()) {
    // Removing the attribute removes an access ACL and keeps the mode.
    const int gone = type == ACL_TYPE_DEFAULT ? ::acl_delete_def_file(name.c_str())
                                              : ::removexattr(name.c_str(), "system.posix_acl_access");
    if (gone != 0 && errno != ENOTSUP && errno != ENOSYS && errno != ENODATA)
      return fail(errno_error(errno, path));
    return {};
  }
  const Acl acl(::acl_from_text(text.c_str()));
  if (!acl || ::acl_valid(acl.get()) != 0)
    return fail(ErrorCode::failed, path + ": `" + text + "` is not a valid ACL");
  if (::acl_set_file(name.c_str(), type, acl.get()) == 0)
    return {};
  if (errno == ENOTSUP || errno == ENOSYS)
    return fail(ErrorCode::unsupported, path + ": its file system has no POSIX ACLs",
                "set it on the server, or mount the file system with ACLs");
  return fail(errno_error(errno, path));
}

bool same_acl(const std::string& a, const std::string& b) {
  if (a == b || a.empty() || b.empty())
    return a == b;
  const Acl first(::acl_from_text(a.c_str()));
  const Acl second(::acl_from_text(b.c_str()));
  return first && second && ::acl_cmp(first.get(), second.get()) == 0;
}

bool same_access(const Access& a, const Access& b) {
  return a.uid == b.uid && a.gid == b.gid && a.mode == b.mode && same_acl(a.default_acl, b.default_acl);
}

Result<Access> read_access(int fd, const struct stat& status, const std::string& path) {
  Access access{status.st_uid, status.st_gid, status.st_mode & 07777U, {}};
  if (S_ISDIR(status.st_mode)) {
    TRY_ASSIGN(access.default_acl, read_acl(fd, ACL_TYPE_DEFAULT, path));
  }
  return access;
}

Result<void> set_access(int fd, const Access& before, const Access& after, const std::string& path) {
  const auto name = sys::by_descriptor(fd);
  const bool other_owner = before.uid != after.uid || before.gid != after.gid;
  // The mode is first limited to what both allow.
  if (const auto both = before.mode & after.mode;
      other_owner && both != before.mode && ::chmod(name.c_str(), both) != 0)
    return fail(errno_error(errno, path));
  if (other_owner && ::fchownat(fd, "", after.uid, after.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errno_error(errno, path, "changing the owner needs root, on the server"));
  if (!same_acl(before.default_acl, after.default_acl))
    TRY(write_acl(fd, ACL_TYPE_DEFAULT, path, after.default_acl));
  // The mode is set last, because chown(2) clears the set-id bits.
  if ((other_owner || before.mode != after.mode) && ::chmod(name.c_str(), after.mode) != 0)
    return fail(errno_error(errno, path));
  return {};
}

std::string default_acl(std::uint32_t mode) {
  const auto three = [](std::uint32_t bits) {
    return fmt::format("{}{}{}", (bits & 4U) != 0 ? 'r' : '-', (bits & 2U) != 0 ? 'w' : '-',
                       (bits & 1U) != 0 ? 'x' : '-');
  };
  return fmt::format("u::{},g::{},o::{}", three(mode >> 6U), three(mode >> 3U), three(mode));
}

} // namespace sharefs::tree

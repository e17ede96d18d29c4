#include "plan/acl.hpp"

#include <acl/libacl.h>
#include <cerrno>
#include <memory>
#include <sys/xattr.h>

namespace sharefs::plan {

namespace {

struct FreeAcl {
  void operator()(void* acl) const { ::acl_free(acl); }
};
using Acl = std::unique_ptr<std::remove_pointer_t<acl_t>, FreeAcl>;

std::string text_of_acl(acl_t acl) {
  const std::unique_ptr<char, FreeAcl> text(::acl_to_any_text(acl, nullptr, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS));
  return text ? text.get() : "";
}

std::uint32_t rights_of(acl_entry_t entry) {
  acl_permset_t set = nullptr;
  ::acl_get_permset(entry, &set);
  const auto bit = [&](acl_perm_t right, std::uint32_t value) { return ::acl_get_perm(set, right) == 1 ? value : 0U; };
  return bit(ACL_READ, 4) | bit(ACL_WRITE, 2) | bit(ACL_EXECUTE, 1);
}

void set_rights(acl_entry_t entry, std::uint32_t rights) {
  acl_permset_t set = nullptr;
  ::acl_get_permset(entry, &set);
  ::acl_clear_perms(set);
  for (const auto& [right, value] : {std::pair{ACL_READ, 4U}, std::pair{ACL_WRITE, 2U}, std::pair{ACL_EXECUTE, 1U}})
    if ((rights & value) != 0)
      ::acl_add_perm(set, static_cast<acl_perm_t>(right));
}

acl_tag_t tag_of(acl_entry_t entry) {
  acl_tag_t tag = ACL_UNDEFINED_TAG;
  ::acl_get_tag_type(entry, &tag);
  return tag;
}

} // namespace

std::string by_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

bool holds_acls(int fd) {
  return ::getxattr(by_descriptor(fd).c_str(), "system.posix_acl_default", nullptr, 0) >= 0 || errno == ENODATA;
}

Result<std::string> read_acl(int fd, acl_type_t type, const std::string& path) {
  const auto name = by_descriptor(fd);
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
  const auto name = by_descriptor(fd);
  if (text.empty()) {
    // An access ACL goes with its attribute, and leaves the mode.
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

std::string acl_with_group(const std::string& text, std::uint32_t bits, std::uint32_t& mask) {
  const Acl acl(::acl_from_text(text.c_str()));
  acl_entry_t entry = nullptr;
  mask = 7;
  for (int id = ACL_FIRST_ENTRY; acl && ::acl_get_entry(acl.get(), id, &entry) == 1; id = ACL_NEXT_ENTRY)
    if (tag_of(entry) == ACL_MASK)
      mask = rights_of(entry);
  const auto before = mask;
  for (int id = ACL_FIRST_ENTRY; acl && ::acl_get_entry(acl.get(), id, &entry) == 1; id = ACL_NEXT_ENTRY) {
    const auto tag = tag_of(entry);
    if (tag == ACL_USER || tag == ACL_GROUP)
      set_rights(entry, rights_of(entry) & before);
    if (tag == ACL_GROUP_OBJ)
      set_rights(entry, (rights_of(entry) & before) | bits);
  }
  mask |= bits;
  for (int id = ACL_FIRST_ENTRY; acl && ::acl_get_entry(acl.get(), id, &entry) == 1; id = ACL_NEXT_ENTRY)
    if (tag_of(entry) == ACL_MASK)
      set_rights(entry, mask);
  return acl ? text_of_acl(acl.get()) : text;
}

} // namespace sharefs::plan

#include "sys/fs/extended_attributes.hpp"

#include "base/text.hpp"
#include "sys/process/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <sys/xattr.h>

namespace sharefs::sys {
namespace {

/// Calls `ask` until the whole value fits. The first buffer is large enough for most values, because over NFS each of
/// these calls is a round trip. If a value grows between two calls, it is read again.
template <class Ask> tl::expected<std::string, int> read_value(const Ask& ask) {
  std::string bytes(256, '\0');
  for (;;) {
    const ssize_t got = ask(bytes.data(), bytes.size());
    if (got >= 0) {
      bytes.resize(static_cast<std::size_t>(got));
      return bytes;
    }
    const ssize_t size = errno == ERANGE ? ask(nullptr, 0) : -1;
    if (size < 0)
      return tl::make_unexpected(errno);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 1))); // 0 would ask for the size again
  }
}

constexpr mode_t k_all = 7;

/// Reads numbers and texts from the bytes of an attribute; ok() is false after reading past the end.
class NumberReader {
 public:
  explicit NumberReader(std::string_view bytes, bool big_endian) : m_bytes(bytes), m_big_endian(big_endian) {}
  std::uint32_t next(std::size_t size) {
    const auto bytes = text(size);
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      number = number << 8U | static_cast<unsigned char>(bytes[m_big_endian ? i : bytes.size() - 1 - i]);
    return number;
  }
  std::string_view text(std::size_t size) {
    m_ok = m_ok && size <= m_bytes.size();
    const auto found = m_bytes.substr(0, m_ok ? size : 0);
    m_bytes.remove_prefix(found.size());
    return found;
  }
  [[nodiscard]] bool ok() const { return m_ok; }
  [[nodiscard]] bool is_at_end() const { return m_bytes.empty(); }

 private:
  std::string_view m_bytes;
  bool m_big_endian, m_ok = true;
};

struct AclRights {
  mode_t group = 0;     ///< of the owning group
  mode_t named = k_all; ///< of the named user or group that has the least
};

/// Reads the rights within the mask (linux/posix_acl_xattr.h). nullopt: the ACL cannot be read.
std::optional<AclRights> read_posix_rights(std::string_view acl) {
  constexpr unsigned k_user = 0x02, k_group = 0x04, k_named_group = 0x08, k_mask = 0x10;
  NumberReader reader(acl, false);
  reader.next(4); // the version
  AclRights rights;
  mode_t mask = k_all;
  bool has_named = false;
  while (reader.ok() && !reader.is_at_end()) {
    const auto tag = reader.next(2), bits = reader.next(2);
    reader.next(4); // an id
    has_named = has_named || tag == k_user || tag == k_named_group;
    if (tag == k_user || tag == k_named_group)
      rights.named &= bits;
    else if (tag == k_group || tag == k_mask)
      (tag == k_group ? rights.group : mask) = bits & k_all;
  }
  rights.group &= mask;
  rights.named &= has_named ? mask : k_all;
  return reader.ok() ? std::optional(rights) : std::nullopt;
}

/// Reads nfsace4 of RFC 7530, as the Linux client passes it on: the group has what is allowed to GROUP@ or EVERYONE@
/// and not denied before, a named user or group what is not denied to it. nullopt: the ACL cannot be read.
std::optional<AclRights> read_nfs4_rights(std::string_view acl) {
  constexpr std::uint32_t k_allow = 0, k_deny = 1, k_reads = 0x1, k_writes = 0x2, k_executes = 0x20,
                          k_for_new_only = 0x8;
  NumberReader reader(acl, true);
  mode_t allowed = 0, denied = 0, named = k_all;
  for (auto left = reader.next(4); left > 0 && reader.ok(); --left) {
    const auto type = reader.next(4);
    const auto flags = reader.next(4), mask = reader.next(4), length = reader.next(4);
    const auto who = reader.text(length);
    reader.text((4 - length % 4) % 4);
    if (who == "OWNER@" || (flags & k_for_new_only) != 0) // an entry of the default ACL
      continue;
    const mode_t bits = ((mask & k_reads) != 0 ? S_IROTH : 0U) | ((mask & k_writes) != 0 ? S_IWOTH : 0U) |
                        ((mask & k_executes) != 0 ? S_IXOTH : 0U);
    if (who != "GROUP@" && who != "EVERYONE@")
      named &= type == k_deny ? ~bits : k_all;
    else if (type == k_allow)
      allowed |= bits & ~denied;
    else if (type == k_deny)
      denied |= bits & ~allowed;
  }
  return reader.ok() ? std::optional(AclRights{allowed, named}) : std::nullopt;
}

} // namespace

bool is_unsupported_attribute(int error) {
  return error == EOPNOTSUPP || error == ENOSYS;
}

tl::expected<std::vector<std::pair<std::string, std::string>>, int>
read_extended_attributes(int fd, const std::function<bool(std::string_view name)>& wanted) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto names = read_value([fd](char* into, std::size_t size) { return ::flistxattr(fd, into, size); });
  if (!names && !is_unsupported_attribute(names.error()))
    return tl::make_unexpected(names.error());
  for (const auto& name : split(names.value_or(""), '\0')) {
    if (name.empty() || !wanted(name))
      continue;
    auto value = read_value([&](char* into, std::size_t size) { return ::fgetxattr(fd, name.c_str(), into, size); });
    if (value)
      found.emplace_back(name, std::move(*value));
    else if (value.error() != ENODATA && !is_unsupported_attribute(value.error()) && !name.starts_with("security."))
      return tl::make_unexpected(value.error());
  }
  return found;
}

mode_t mode_by_acl(int fd, mode_t mode, mode_t* withheld) {
  const mode_t group = mode >> 3U & k_all, others = mode & k_all;
  if (withheld == nullptr ? (group & ~others) == 0 : (group | others) == 0)
    return mode;
  const auto path = by_descriptor(fd);
  for (const auto* name : {k_acl_attribute, "system.nfs4_acl"}) {
    const auto acl =
        read_value([&](char* into, std::size_t size) { return ::getxattr(path.c_str(), name, into, size); });
    if (!acl && (acl.error() == ENODATA || is_unsupported_attribute(acl.error())))
      continue;
    const auto rights = !acl                      ? std::nullopt
                        : name == k_acl_attribute ? read_posix_rights(*acl)
                                                  : read_nfs4_rights(*acl);
    const mode_t of_group = group & (rights ? rights->group : others);
    mode = (mode & ~static_cast<mode_t>(S_IRWXG)) | of_group << 3U;
    if (withheld != nullptr && rights)
      *withheld = (of_group | others) & ~rights->named;
  }
  return mode;
}

} // namespace sharefs::sys

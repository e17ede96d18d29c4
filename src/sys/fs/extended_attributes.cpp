#include "sys/fs/extended_attributes.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/xattr.h>

namespace sharefs::sys {
namespace {

/// At first with room for what there mostly is: over NFS each of these calls is a round trip. A value that grows
/// between two calls is asked for again.
template <class Ask> tl::expected<std::string, int> ask_all(const Ask& ask) {
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

} // namespace

bool is_unsupported_attribute(int error) {
  return error == EOPNOTSUPP || error == ENOSYS;
}

tl::expected<std::vector<std::pair<std::string, std::string>>, int>
read_extended_attributes(int fd, const std::function<bool(std::string_view name)>& wanted) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto names = ask_all([fd](char* into, std::size_t size) { return ::flistxattr(fd, into, size); });
  if (!names && !is_unsupported_attribute(names.error()))
    return tl::make_unexpected(names.error());
  for (const auto& name : split(names.value_or(""), '\0')) {
    if (name.empty() || !wanted(name))
      continue;
    auto value = ask_all([&](char* into, std::size_t size) { return ::fgetxattr(fd, name.c_str(), into, size); });
    if (value)
      found.emplace_back(name, std::move(*value));
    else if (value.error() != ENODATA && !is_unsupported_attribute(value.error()) && !name.starts_with("security."))
      return tl::make_unexpected(value.error());
  }
  return found;
}

} // namespace sharefs::sys

#pragma once
// Extended attributes of open files, ACLs among them.
#include <functional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sharefs::sys {

inline constexpr const char* k_acl_attribute = "system.posix_acl_access";
inline constexpr const char* k_default_acl_attribute = "system.posix_acl_default";

/// Does this errno say that the file system has no such attributes?
bool is_unsupported_attribute(int error);

/// Names and values of those attributes that `wanted` accepts, or errno. A file system without attributes has none; one
/// that was removed meanwhile is left out, and so is a label (security.*) that only others may read.
tl::expected<std::vector<std::pair<std::string, std::string>>, int>
read_extended_attributes(int fd, const std::function<bool(std::string_view name)>& wanted);

/// The mode of what an open descriptor (O_PATH will do) stands for, with what its ACL leaves the group of itself: the
/// group's bits of a mode are the mask of the ACL, by which others may be named, and are the group's where a copy has
/// no ACL. Both kinds are asked: POSIX, and those of an NFS server of version 4. Where the group may do no more than
/// all others, nothing is asked. An ACL that cannot be read leaves the group what all others have.
mode_t mode_by_acl(int fd, mode_t mode);

} // namespace sharefs::sys

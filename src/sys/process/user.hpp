#pragma once
#include "sys/process/wire.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

/// The directories of the system's own programs. The caller's PATH is not used, because it could name any directory.
inline constexpr const char* k_system_path = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A user of the host, as getpwnam(3) and getgrouplist(3) report it.
struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups; ///< supplementary groups, including `gid`
  std::string home;
  std::string shell = {}; ///< empty: unknown

  friend bool operator==(const User&, const User&) = default;
};

template <FieldsOf<User> U> auto fields(U& u) {
  return named("name", u.name, "uid", u.uid, "gid", u.gid, "groups", u.groups, "home", u.home, "shell", u.shell);
}

} // namespace sharefs::sys

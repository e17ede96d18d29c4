#include "sys/process/rights.hpp"

#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace sharefs::sys {

int lower_limit(__rlimit_resource resource, rlim_t at_most) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0)
    return errno;
  limit.rlim_max = std::min(limit.rlim_max, at_most);
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(resource, &limit) == 0 ? 0 : errno;
}

int set_capabilities(unsigned effective, unsigned inheritable) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  sets[0].permitted = sets[0].effective = effective;
  sets[0].inheritable = inheritable;
  return ::syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

bool keep_capability(unsigned number) {
  return set_capabilities(1U << number, 1U << number) == 0 &&
         ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) == 0;
}

bool map_ids(const std::string& proc, const std::string& users, const std::string& groups) {
  const auto write = [&](const char* name, const std::string& text) {
    const Fd file(::open((proc + name).c_str(), O_WRONLY | O_CLOEXEC));
    return file && write_all(file.get(), text);
  };
  return write("setgroups", "deny") && write("uid_map", users) && write("gid_map", groups);
}

} // namespace sharefs::sys

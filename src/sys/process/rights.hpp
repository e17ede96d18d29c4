#pragma once
// Rights of this process, given up or kept: limits, capabilities, the numbers of a user namespace.
#include <string>
#include <sys/resource.h>

namespace sharefs::sys {

inline constexpr id_t k_nobody = 65534; ///< uid and gid that own nothing, on every distribution

/// No more than this, for good. 0 or errno.
int lower_limit(__rlimit_resource resource, rlim_t at_most);

/// Bits of capabilities(7): those in effect, and those that execve(2) could hand on; no other is left. 0 or errno.
int set_capabilities(unsigned effective, unsigned inheritable = 0);
/// The one capability that is left, to this process and to the program that it executes. False with errno.
bool keep_capability(unsigned number);

/// Gives the user namespace of a process its numbers (user_namespaces(7)): lines of "INSIDE OUTSIDE COUNT". `proc` is
/// "/proc/self/", or that of another process. False with errno.
bool map_ids(const std::string& proc, const std::string& users, const std::string& groups);

} // namespace sharefs::sys

#pragma once
// Gives up or keeps rights of this process: resource limits, capabilities, the id maps of a user namespace.
#include <string>
#include <sys/resource.h>

namespace sharefs::sys {

inline constexpr id_t k_nobody = 65534; ///< uid and gid of nobody, who owns no files, on every distribution

/// Lowers the soft and the hard limit to `at_most`, for good. Returns 0 or errno.
int lower_limit(__rlimit_resource resource, rlim_t at_most);

/// Sets the effective and the inheritable capabilities (bits of capabilities(7)) and drops all others. Returns 0 or
/// errno.
int set_capabilities(unsigned effective, unsigned inheritable = 0);
/// Keeps only this capability, for this process and the program that it executes. False with errno.
bool keep_capability(unsigned number);

/// Writes the id maps of the user namespace of a process (user_namespaces(7)): lines of "INSIDE OUTSIDE COUNT". `proc`
/// is "/proc/self/", or the directory of another process. False with errno.
bool map_ids(const std::string& proc, const std::string& users, const std::string& groups);

} // namespace sharefs::sys

#pragma once
// Reads the name, the addresses and the users of this host.
#include "base/result.hpp"
#include "sys/identity/identity.hpp"
#include "sys/process/user.hpp"

namespace sharefs::sys {

/// Never fails: an unknown field stays empty. Name services are asked in a child with a deadline.
Identity local_identity();
/// Finds a user by name or by uid, by getpwnam(3) and getgrouplist(3) in a child with a deadline, because LDAP and NIS
/// can hang. Errors: `not_found`, `timeout`.
Result<User> local_user(const std::string& name);

} // namespace sharefs::sys

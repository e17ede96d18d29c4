#pragma once
// Who and where we are: name, addresses, users of this host.
#include "base/result.hpp"
#include "sys/identity/identity.hpp"
#include "sys/process/user.hpp"

namespace sharefs::sys {

/// Never fails: what cannot be found out stays empty. Name services are asked in a child with a deadline.
Identity local_identity();
/// getpwnam(3) and getgrouplist(3) in a child with a deadline (LDAP and NIS can hang). `not_found`, `timeout`.
Result<User> local_user(const std::string& name);

} // namespace sharefs::sys

#pragma once
// The ids of this process's user namespace (user_namespaces(7)): of a container that a user has started, or none.
#include <sys/types.h>

namespace sharefs::sys {

/// The owner of all files whose owners a user namespace does not map (the kernel's default).
inline constexpr uid_t k_unmapped_uid = 65534;

/// True if the namespace does not map the root outside of it: then what belongs to that root seems to belong to
/// k_unmapped_uid, like what belongs to any other user.
bool is_root_unmapped();
/// Returns the uid outside of the namespace for one inside; the same if there is no namespace, or none outside.
uid_t outside_uid(uid_t inside);

} // namespace sharefs::sys

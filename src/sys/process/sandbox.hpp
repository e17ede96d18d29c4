#pragma once
// Limits for a forked child that reads what a stranger has sent. Neither step can be undone; both return 0 or an errno.

namespace sharefs::sys {

/// Become nobody: uid, gid and groups where we are root, no capability, none to be gained, no core file. What needs a
/// privilege (a reserved port) is done before.
int drop_privileges();

/// From here on the process has memory, a clock, the descriptors that it holds and TCP; no file, no program, no other
/// process. Any other system call ends it by SIGSYS, as do 10 s of computing and 64 MiB more of memory than now.
int restrict_to_network();

} // namespace sharefs::sys

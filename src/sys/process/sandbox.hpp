#pragma once
// Limits for a forked child that reads data from an untrusted server. Neither step can be undone; both return 0 or an
// errno.

namespace sharefs::sys {

/// Makes this process nobody (uid, gid and groups, if it is root), without capabilities, unable to gain any, and
/// without a core file. Work that needs a privilege, such as binding a reserved port, must be done before.
int drop_privileges();

/// From here on the process can use only memory, the clock, its open descriptors and TCP: it cannot open files, run
/// programs or reach other processes. Any other system call ends it by SIGSYS. It may use 10 s of processor time and 64
/// MiB more of memory than now.
int restrict_to_network();

} // namespace sharefs::sys

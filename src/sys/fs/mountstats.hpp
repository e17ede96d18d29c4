#pragma once
// Reads the kernel's counters for each NFS mount in /proc/self/mountstats, which show whether two hosts use the same
// client name. (Linux fs/nfs/super.c nfs_show_stats, net/sunrpc/stats.c rpc_clnt_show_stats, net/sunrpc/xprtsock.c
// xs_tcp_print_stats.)
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

namespace sharefs::sys {

class Files;

/// Counts how often the server no longer knew the client of an NFS 4 mount although the connection had lasted, because
/// another host with the same client name had replaced it. Two such hosts replace each other in turn, at the latest
/// with each renewal of their leases. A restarted server or a network failure also ends the connection, and is not
/// counted.
struct Takeovers {
  std::uint64_t times = 0;
  std::chrono::seconds age{0}; ///< age of the client's oldest mount from this server
};
using TakeoversByTarget = std::map<std::string, Takeovers, std::less<>>;

/// Parses the mounts of NFS 4 in the text of mountstats. Lines that cannot be read are ignored.
TakeoversByTarget takeovers_in(std::istream& mountstats);
/// Reads the present counters of the kernel. Empty if they cannot be read.
TakeoversByTarget read_takeovers(const Files& files);
/// True if the counters show that a second host has the same client name. `before`, if given, was read some requests
/// earlier for the same mount. A machine that slept longer than its lease time loses the lease in the same way, but not
/// repeatedly.
bool shows_second_host(const Takeovers& now, const Takeovers* before = nullptr);

} // namespace sharefs::sys

#pragma once
// Counters of the kernel for each NFS mount, as far as it shows that two hosts have one name: /proc/self/mountstats.
// (Linux fs/nfs/super.c nfs_show_stats, net/sunrpc/stats.c rpc_clnt_show_stats, net/sunrpc/xprtsock.c
// xs_tcp_print_stats.)
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sharefs::sys {

class Files;

/// How often a mount of NFS 4 found that the server no longer knew this client, although the connection had lasted:
/// another host with the same client name had taken its place. Both of them do so in turn, at the latest with each
/// renewal of their leases. A server that starts again, or a network that was away, costs a connection as well.
struct Takeovers {
  std::uint64_t times = 0;
  std::chrono::seconds age{0}; ///< of the oldest mount that this client has from the server
};
using TakeoversByTarget = std::map<std::string, Takeovers, std::less<>>;

/// Of the mounts of NFS 4 in the text of mountstats. Lines that cannot be read count for nothing.
TakeoversByTarget takeovers_in(std::string_view mountstats);
/// As the kernel counts now. Empty where there is nothing that can be read.
TakeoversByTarget read_takeovers(const Files& files);
/// Are they those of two hosts with one name? `before`, if there is one, is of the same mount, some requests earlier.
/// A machine that was asleep for longer than its lease loses it just so, but not again and again.
bool shows_second_host(const Takeovers& now, const Takeovers* before = nullptr);

} // namespace sharefs::sys

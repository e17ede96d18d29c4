#pragma once
// What the kernel counts of each NFS mount: /proc/self/mountstats. (Linux fs/nfs/super.c nfs_show_stats,
// net/sunrpc/stats.c rpc_clnt_show_stats, net/sunrpc/xprtsock.c xs_tcp_print_stats.)
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

/// A kind of request, as READ. Times are sums over all requests.
struct Operation {
  std::uint64_t count = 0;
  std::uint64_t transmissions = 0; ///< more than `count`: some were sent again
  std::uint64_t timeouts = 0;      ///< major ones: all repetitions were in vain
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t queue_ms = 0;   ///< from the request's beginning to its (last) transmission
  std::uint64_t rtt_ms = 0;     ///< from its (last) transmission to its reply: the network, and the server
  std::uint64_t execute_ms = 0; ///< all of it. Less `rtt_ms`: waiting on this host, and for what had to be sent again
  std::uint64_t errors = 0;
  friend bool operator==(const Operation&, const Operation&) = default;
};

struct MountStatistics {
  std::string source, target; ///< "storage1:/srv/share", decoded
  std::string options;        ///< all that are in force: "rw,vers=4.2,rsize=1048576,..."
  std::chrono::seconds age{0};
  std::map<std::string, Operation, std::less<>> operations; ///< by name; those that were never asked for too
  std::size_t connections = 0;
  std::uint64_t connects = 0;              ///< how often the one of them was made that was made most often
  std::uint64_t replies = 0, bad_xids = 0; ///< of all connections: replies, and those that answer no request

  [[nodiscard]] const Operation& operation(std::string_view name) const; ///< all zero for one that is not there
  /// The value of `NAME=VALUE`, or "yes" for NAME alone; "" if it is not there.
  [[nodiscard]] std::string option(std::string_view name) const;
  friend bool operator==(const MountStatistics&, const MountStatistics&) = default;
};

/// The NFS mounts of mountstats, in its order. Lines that a later kernel may have are passed over; an error with the
/// line number for a known one that is damaged, and for more than k_most_mounts. Of `only` these operations, if any are
/// named: most of the text is operations.
Result<std::vector<MountStatistics>> parse_mountstats(std::string_view text,
                                                      const std::set<std::string_view>& only = {});
inline constexpr std::size_t k_most_mounts = 20'000;
inline constexpr const char* k_mountstats = "/proc/self/mountstats";
inline constexpr std::size_t k_most_statistics = 64U << 20U; ///< bytes; 3 KiB of a mount

/// What has happened between two readings of one mount point. All of `now` if it is another mount than before.
MountStatistics since(MountStatistics now, const MountStatistics& before);

/// How often a mount of NFS 4 found that the server no longer knew this client, although the connection had lasted:
/// another host with the same client name had taken its place. Both of them do so in turn, at the latest with each
/// renewal of their leases. A server that starts again, or a network that was away, costs a connection as well.
struct Takeovers {
  std::uint64_t times = 0;
  std::chrono::seconds age{0}; ///< of the oldest mount that this client has from the server
};
using TakeoversByTarget = std::map<std::string, Takeovers, std::less<>>;
/// Of the mounts of NFS 4.
TakeoversByTarget takeovers_in(const std::vector<MountStatistics>& mounts);
/// As the kernel counts now. Empty where there is nothing that can be read.
class Files;
TakeoversByTarget read_takeovers(const Files& files);
/// Are they those of two hosts with one name? `before`, if there is one, is of the same mount, some requests earlier.
/// A machine that was asleep for longer than its lease loses it just so, but not again and again.
bool shows_second_host(const Takeovers& now, const Takeovers* before = nullptr);

} // namespace sharefs::sys

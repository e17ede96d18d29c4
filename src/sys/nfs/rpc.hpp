#pragma once
// Sun RPC (RFC 5531) over TCP with deadlines, for the few calls of a probe; of many calls at a time: rpc_pipeline.hpp.
// Whatever a server sends, each count and length is checked before it is used: too much, too little and nonsense are
// all `unreadable`.
#include "sys/nfs/nfs_probe.hpp"
#include "sys/nfs/xdr.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

/// Why something got no answer.
enum class Fault : std::uint8_t {
  none,
  no_such_name,
  name_service, ///< it failed: `error_number` is getaddrinfo(3)'s
  connection,   ///< was not made: `error_number`, ETIMEDOUT when the deadline passed
  timeout,      ///< connected, but no answer
  closed,       ///< the connection ended before the answer
  unsupported,  ///< the server does not offer the program or version
  refused,      ///< the server takes the call, but not from us
  unreadable,   ///< what it sent cannot be read
  unregistered, ///< the portmapper does not know the program
  nothing,      ///< the list of exports is empty
  not_asked,    ///< we could not ask: `error_number`
};
struct Failure {
  Fault fault = Fault::none;
  int error_number = 0;
  friend bool operator==(const Failure&, const Failure&) = default;
};
template <class T> using Answer = tl::expected<T, Failure>;
inline tl::unexpected<Failure> failure(Fault fault, int error_number = 0) {
  return tl::make_unexpected(Failure{fault, error_number});
}

inline constexpr std::size_t k_max_reply = 8U << 20U; ///< bytes of one reply
inline constexpr std::size_t k_max_entries = 100'000; ///< of a list, clients of all exports together
inline constexpr std::size_t k_max_name = 1024;       ///< MNTPATHLEN of RFC 1813
inline constexpr std::size_t k_max_handle = 64;       ///< NFS3_FHSIZE, and FHSIZE3 of mountd

struct RpcProcedure {
  std::uint32_t program, version, number;
};
inline constexpr std::uint32_t k_program_nfs = 100003, k_program_mount = 100005;
inline constexpr RpcProcedure k_portmapper_dump{100000, 2, 4};
inline constexpr RpcProcedure k_rpcbind_dump{100000, 3, 4}; ///< version 2 knows the ports of IPv4 only
inline constexpr RpcProcedure k_mount_mnt{k_program_mount, 3, 1}, k_mount_umnt{k_program_mount, 3, 3},
    k_mount_export{k_program_mount, 3, 5};

struct RpcMapping {
  std::uint32_t program = 0, version = 0, protocol = 0, port = 0; ///< protocol: IPPROTO_TCP or IPPROTO_UDP
};
struct MountReply {
  std::uint32_t status = 0;   ///< mountstat3: 0 ok, 2 no such file, 13 access denied, ...
  bool only_kerberos = false; ///< neither AUTH_SYS nor AUTH_NONE
  friend bool operator==(const MountReply&, const MountReply&) = default;
};

/// The result in a reply record, if the call was accepted and done.
Answer<std::string_view> read_reply(std::string_view record, std::uint32_t xid);
Answer<std::vector<RpcMapping>> read_mappings(std::string_view result);
/// Those of k_rpcbind_dump for TCP over IPv6 (RFC 1833: `tcp6`, and the port in the last two numbers of "::.8.1").
Answer<std::vector<RpcMapping>> read_mappings_of_ipv6(std::string_view result);
Answer<std::vector<ExportListing>> read_exports(std::string_view result);
Answer<MountReply> read_mount_reply(std::string_view result);
/// The status of a compound of NFS 4 as a mountstat3, which has the same numbers. `unsupported` where the server does
/// not speak minor version 0.
Answer<MountReply> read_compound_status(std::string_view result);

/// The records in a stream, of at most `most` bytes each.
class RecordReader {
 public:
  explicit RecordReader(std::size_t most) : m_most(most) {}
  /// What has come next. `unreadable` past the bound: then the stream is of no more use.
  Answer<void> add(std::string_view bytes);
  std::optional<std::string> next();

 private:
  std::size_t m_most;
  std::string m_mark, m_record;
  std::deque<std::string> m_whole;
  std::size_t m_left = 0;    ///< of the fragment
  std::size_t m_counted = 0; ///< for the record: an empty fragment counts as well
  bool m_in_fragment = false, m_is_last = false;
};

/// A call with its record mark, as it is sent.
std::string call_record(std::uint32_t xid, const RpcProcedure& procedure, std::string_view credential,
                        std::string_view arguments);

/// One connection to one RPC server, non-blocking. After a failure other than `unsupported` and `refused` it is of no
/// more use.
class RpcConnection {
 public:
  RpcConnection(Fd connected, std::string credential)
      : m_fd(std::move(connected)), m_credential(std::move(credential)) {}

  /// The result as bytes.
  Answer<std::string> call(const RpcProcedure& procedure, std::string_view arguments, Deadline deadline);

 private:
  Answer<void> send(std::string_view bytes, Deadline deadline);
  Answer<std::string> receive_record(Deadline deadline);

  Fd m_fd;
  std::string m_credential; ///< opaque_auth of RFC 5531
  RecordReader m_records{k_max_reply};
  std::uint32_t m_xid = 0;
};

inline constexpr std::size_t k_max_groups = 16; ///< of AUTH_SYS; the kernel leaves further ones away as well

/// AUTH_SYS as we are now: without groups what mount.nfs sends, with getgroups(2) what the kernel sends.
std::string own_credential(std::span<const gid_t> groups = {});

} // namespace sharefs::sys

#pragma once
// The calls of a probe over one connection, spoken by libnfs. What libnfs does with a hostile reply is not known: only
// the child without privileges may use this (sandbox.hpp).
#include "sys/nfs/server_answers.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <functional>
#include <memory>

struct nfs_context;
struct rpc_context;

namespace sharefs::sys {

inline constexpr std::uint32_t k_program_nfs = 100003, k_program_mount = 100005;

/// Who is named in the calls (AUTH_SYS): as mount.nfs does it, without further groups.
struct Caller {
  std::string host;
  uid_t uid = 0;
  gid_t gid = 0;
};
Caller own_caller();

/// After a failure other than `unsupported`, `refused` and `status` the connection is of no more use.
class RpcClient {
 public:
  /// `connected` is a non-blocking socket.
  RpcClient(Fd connected, const Caller& caller);
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  /// The procedure that does nothing.
  Failure null(std::uint32_t program, std::uint32_t version, Deadline until);
  /// NFS 4: from the root through `names`. The status, which is that of the last step that was tried.
  Answer<std::uint32_t> look_up(const std::vector<std::string>& names, Deadline until);
  /// What the portmapper says of mountd's version 3; 0: it does not know it. Version 2 of the portmapper knows the
  /// ports of IPv4 only; those of IPv6 are asked of version 3.
  Answer<std::uint16_t> mountd_port(bool over_ipv6, Deadline until);
  Answer<std::vector<ExportListing>> exports(Deadline until);
  /// MNT of a path, and UMNT, which takes us out of the server's list of mounts again.
  Failure mount(const std::string& path, Deadline until);

 private:
  struct Call {
    std::function<Failure(const void* result)> read; ///< the result is libnfs's, and lives only so long
    bool done = false;
    Failure failure;
  };
  using Queue = std::function<bool(void (*reply)(rpc_context*, int, void*, void*), void* call)>;
  Failure call(Deadline until, const Queue& queue, std::function<Failure(const void* result)> read = nullptr);
  static void finish(rpc_context* rpc, int status, void* result, void* call);

  Call m_call; ///< libnfs keeps its address for as long as the context lives
  std::unique_ptr<nfs_context, void (*)(nfs_context*)> m_context;
  rpc_context* m_rpc;
};

} // namespace sharefs::sys

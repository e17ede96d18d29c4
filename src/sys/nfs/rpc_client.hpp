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

/// After a failure other than `unsupported`, `refused` and `status` the connection is of no more use.
class RpcClient {
 public:
  /// `connected` is a non-blocking socket. The ids are named in the calls (AUTH_SYS), without further groups.
  RpcClient(Fd connected, uid_t uid, gid_t gid);
  RpcClient(const RpcClient&) = delete;

  /// The procedure that does nothing.
  ServerAnswer null(std::uint32_t program, std::uint32_t version, Deadline until);
  /// NFS 4: from the root through `names`. A `status` is that of the last step that was tried.
  ServerAnswer look_up(const std::vector<std::string>& names, Deadline until);
  /// Asks the portmapper for the port of mountd's version 3; 0: it does not know it. Version 2 of the portmapper knows
  /// the ports of IPv4 only; those of IPv6 are asked of version 3.
  ServerAnswer find_mountd(bool over_ipv6, std::uint16_t& port, Deadline until);
  ServerAnswer list_exports(std::vector<ExportListing>& exports, Deadline until);
  /// MNT of a path, and UMNT, which takes us out of the server's list of mounts again.
  ServerAnswer mount(const std::string& path, Deadline until);

 private:
  using Read = std::function<ServerAnswer(const void* result)>; ///< the result is libnfs's, and lives only so long
  struct Call {
    Read read;
    bool done = false;
    ServerAnswer answer;
  };
  template <class Queue> ServerAnswer call(Deadline until, const Queue& queue, Read read = nullptr);
  static void finish(rpc_context* rpc, int status, void* result, void* call);

  Call m_call; ///< libnfs keeps its address for as long as the context lives
  std::unique_ptr<nfs_context, void (*)(nfs_context*)> m_context;
  rpc_context* m_rpc = nullptr;
};

} // namespace sharefs::sys

#pragma once
// Makes the calls of a probe over one connection, by libnfs. A hostile reply may make libnfs do anything, so only the
// child without privileges may use this class (sandbox.hpp).
#include "sys/nfs/server_answers.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <functional>
#include <memory>

struct nfs_context;
struct rpc_context;

namespace sharefs::sys {

inline constexpr std::uint32_t k_program_nfs = 100003, k_program_mount = 100005;
inline constexpr int k_minor_version_mismatch = 10021; ///< NFS4ERR_MINOR_VERS_MISMATCH of RFC 7530

/// After a failure other than `unsupported`, `refused` and `status` the connection cannot be used any more.
class RpcClient {
 public:
  /// `connected` is a non-blocking socket. The calls carry these ids (AUTH_SYS), without further groups.
  RpcClient(Fd connected, uid_t uid, gid_t gid);
  RpcClient(const RpcClient&) = delete;

  /// Calls the NULL procedure, which does nothing.
  ServerAnswer null(std::uint32_t program, std::uint32_t version, Deadline until);
  /// Looks up `names` one below the other by NFS 4, starting at the root, and asks for the type of the last one: only
  /// then a server checks this host's port, and only with an attribute it reports a referral. A `status` is that of the
  /// last step tried. There is no session, so newer minor versions than 0 refuse every look-up; any answer but
  /// k_minor_version_mismatch shows that the server offers the minor version.
  ServerAnswer look_up(const std::vector<std::string>& names, std::uint32_t minor, Deadline until);
  /// Asks the portmapper for the port of mountd's version 3; 0: it does not know mountd. Version 2 of the portmapper
  /// protocol has only ports of IPv4, so version 3 is used for those of IPv6.
  ServerAnswer find_mountd(bool over_ipv6, std::uint16_t& port, Deadline until);
  ServerAnswer list_exports(std::vector<ExportListing>& exports, Deadline until);
  /// Calls MNT for a path, then UMNT, which removes us from the server's list of mounts again.
  ServerAnswer mount(const std::string& path, Deadline until);

 private:
  using Read = std::function<ServerAnswer(const void* result)>; ///< libnfs frees the result after this call
  struct Call {
    Read read;
    bool done = false;
    ServerAnswer answer;
  };
  template <class Queue> ServerAnswer call(Deadline until, const Queue& queue, Read read = nullptr);
  static void finish(rpc_context* rpc, int status, void* result, void* call);

  Call m_call; ///< a member, because libnfs keeps its address as long as the context exists
  std::unique_ptr<nfs_context, void (*)(nfs_context*)> m_context;
  rpc_context* m_rpc = nullptr;
};

} // namespace sharefs::sys

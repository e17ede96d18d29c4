#pragma once
// Sun RPC calls over libnfs' raw asynchronous interface, with our own poll loop, so that each has a deadline.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct rpc_context; // libnfs

namespace sharefs::sys {

/// What <nfsc/libnfs-raw*.h> and rpcinfo(8) call them.
inline constexpr unsigned k_program_nfs = 100003, k_program_mount = 100005;

struct RpcMapping {
  unsigned program = 0, version = 0, protocol = 0, port = 0; ///< protocol: IPPROTO_TCP or IPPROTO_UDP
};
struct RpcExport {
  std::string directory;
  std::vector<std::string> clients;
};
struct RpcMountReply {
  unsigned status = 0;      ///< mountstat3: 0 ok, 2 no such file, 13 access denied, ...
  std::vector<int> flavors; ///< 1 AUTH_SYS, 390003 krb5, ...
};

/// One connection to one RPC server. Errors of all calls: `timeout`; `unsupported` if the server does not offer the
/// program or version; `failed` with the reason otherwise. After an error other than `unsupported` it is of no more
/// use.
class RpcConnection {
 public:
  explicit RpcConnection(Fd connected);
  ~RpcConnection();
  RpcConnection(RpcConnection&&) noexcept;
  RpcConnection& operator=(RpcConnection&&) = delete;
  RpcConnection(const RpcConnection&) = delete;
  RpcConnection& operator=(const RpcConnection&) = delete;

  Result<void> null_call(unsigned program, unsigned version, Deadline deadline);
  Result<std::vector<RpcMapping>> portmapper_dump(Deadline deadline);
  Result<std::vector<RpcExport>> mount_export(Deadline deadline);
  Result<RpcMountReply> mount_mnt(const std::string& directory, Deadline deadline);
  Result<void> mount_umnt(const std::string& directory, Deadline deadline);

 private:
  struct Call;
  using Take = std::function<void(void* answer)>;
  /// `issue` queues the call with the given private pointer; `take` reads the answer while libnfs still owns it.
  Result<void> call(const std::function<int(void* private_pointer)>& issue, Take take, Deadline deadline);
  /// Serve the socket until `call` is done.
  Result<void> serve(const Call& call, Deadline deadline);
  static void on_answer(rpc_context*, int status, void* answer, void* private_pointer);

  rpc_context* m_rpc = nullptr;
  std::vector<std::unique_ptr<Call>> m_calls; ///< libnfs answers (cancels) even forgotten ones when it is destroyed
};

} // namespace sharefs::sys

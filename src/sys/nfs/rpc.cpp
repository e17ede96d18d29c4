#include "sys/nfs/rpc.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <utility>

// The raw headers need these two first.
#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs.h>
// (clang-format would sort them)
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-portmap.h>
#include <nfsc/libnfs-raw.h>

// Exported by libnfs 4.0.0, but declared in none of its installed headers.
extern "C" void rpc_set_autoreconnect(rpc_context* rpc, int num_retries);

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_service_interval{50};
constexpr std::size_t k_max_answers = 100'000; ///< entries of a list that a server may make us read

std::string text(const char* value) {
  return value == nullptr ? std::string() : std::string(value);
}

/// libnfs puts the nodes of its lists at addresses that do not fit their type: read a copy.
template <class Node> Node copy_of(const Node* node) {
  Node copy{};
  std::memcpy(&copy, static_cast<const void*>(node), sizeof copy);
  return copy;
}

/// libnfs' texts for PROG_UNAVAIL, PROG_MISMATCH and PROC_UNAVAIL of RFC 5531.
bool is_not_offered(const std::string& error) {
  for (const char* part : {"not available", "mismatch", "unavailable"})
    if (error.find(part) != std::string::npos)
      return true;
  return false;
}

} // namespace

struct RpcConnection::Call {
  Take take;
  bool done = false;
  int status = RPC_STATUS_SUCCESS;
  std::string error;
};

RpcConnection::RpcConnection(Fd connected) : m_rpc(rpc_init_context()) {
  if (m_rpc == nullptr)
    return;
  rpc_set_autoreconnect(m_rpc, 0); // the default spins on a dead server
  rpc_set_fd(m_rpc, connected.release());
  rpc_service(m_rpc, POLLOUT); // tells libnfs that it is connected
}

RpcConnection::~RpcConnection() {
  if (m_rpc != nullptr)
    rpc_destroy_context(m_rpc); // closes the socket
}

RpcConnection::RpcConnection(RpcConnection&& other) noexcept
    : m_rpc(std::exchange(other.m_rpc, nullptr)), m_calls(std::move(other.m_calls)) {}

void RpcConnection::on_answer(rpc_context*, int status, void* answer, void* private_pointer) {
  auto& call = *static_cast<Call*>(private_pointer);
  call.done = true;
  call.status = status;
  if (status == RPC_STATUS_ERROR)
    call.error = text(static_cast<const char*>(answer));
  if (status == RPC_STATUS_SUCCESS && answer != nullptr && call.take)
    call.take(answer);
}

Result<void> RpcConnection::serve(const Call& call, Deadline deadline) {
  while (!call.done) {
    if (Clock::now() >= deadline)
      return fail(ErrorCode::timeout, "no answer");
    pollfd socket{rpc_get_fd(m_rpc), static_cast<short>(rpc_which_events(m_rpc)), 0};
    if (socket.fd < 0)
      return fail(ErrorCode::failed, "the server closed the connection");
    ::poll(&socket, 1, poll_time(deadline, k_service_interval));
    if ((socket.revents & (POLLERR | POLLHUP)) != 0 && (socket.revents & POLLIN) == 0) {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(socket.fd, SOL_SOCKET, SO_ERROR, &error, &size);
      return fail(errno_error(error == 0 ? ECONNRESET : error, "connection"));
    }
    if (rpc_service(m_rpc, socket.revents) < 0 && !call.done)
      return fail(ErrorCode::failed, "the server closed the connection");
  }
  return {};
}

Result<void> RpcConnection::call(const std::function<int(void*)>& issue, Take take, Deadline deadline) {
  if (m_rpc == nullptr)
    return fail(ErrorCode::failed, "out of memory");
  m_calls.push_back(std::make_unique<Call>());
  Call& one = *m_calls.back();
  one.take = std::move(take);
  if (issue(&one) != 0)
    return fail(ErrorCode::failed, text(rpc_get_error(m_rpc)));
  const auto served = serve(one, deadline);
  one.take = nullptr; // what it refers to dies with the caller
  if (!served)
    return served;
  if (one.status == RPC_STATUS_SUCCESS)
    return {};
  if (is_not_offered(one.error))
    return fail(ErrorCode::unsupported, one.error);
  return fail(ErrorCode::failed, one.error.empty() ? "the call was cancelled" : one.error);
}

Result<void> RpcConnection::null_call(unsigned program, unsigned version, Deadline deadline) {
  const auto issue = [&](void* call) {
    return rpc_null_async(m_rpc, static_cast<int>(program), static_cast<int>(version), on_answer, call);
  };
  return call(issue, nullptr, deadline);
}

Result<std::vector<RpcMapping>> RpcConnection::portmapper_dump(Deadline deadline) {
  std::vector<RpcMapping> result;
  const auto take = [&result](void* answer) {
    const pmap2_mapping_list* next = static_cast<pmap2_dump_result*>(answer)->list;
    while (next != nullptr && result.size() < k_max_answers) {
      const pmap2_mapping_list one = copy_of(next);
      result.push_back({one.map.prog, one.map.vers, one.map.prot, one.map.port});
      next = one.next;
    }
  };
  const auto called = call([this](void* c) { return rpc_pmap2_dump_async(m_rpc, on_answer, c); }, take, deadline);
  if (!called)
    return fail(called.error());
  return result;
}

Result<std::vector<RpcExport>> RpcConnection::mount_export(Deadline deadline) {
  std::vector<RpcExport> result;
  const auto take = [&result](void* answer) {
    const exportnode* next = *static_cast<::exports*>(answer);
    while (next != nullptr && result.size() < k_max_answers) {
      const exportnode one = copy_of(next);
      RpcExport listing{text(one.ex_dir), {}};
      for (const groupnode* client = one.ex_groups; client != nullptr;) {
        const groupnode group = copy_of(client);
        listing.clients.push_back(text(group.gr_name));
        client = group.gr_next;
      }
      result.push_back(std::move(listing));
      next = one.ex_next;
    }
  };
  const auto called = call([this](void* c) { return rpc_mount3_export_async(m_rpc, on_answer, c); }, take, deadline);
  if (!called)
    return fail(called.error());
  return result;
}

Result<RpcMountReply> RpcConnection::mount_mnt(const std::string& directory, Deadline deadline) {
  RpcMountReply result;
  std::string path = directory;
  const auto take = [&result](void* answer) {
    const auto& reply = *static_cast<mountres3*>(answer);
    result.status = reply.fhs_status;
    if (reply.fhs_status != MNT3_OK)
      return;
    const auto& flavors = reply.mountres3_u.mountinfo.auth_flavors;
    result.flavors.assign(flavors.auth_flavors_val, flavors.auth_flavors_val + flavors.auth_flavors_len);
  };
  const auto issue = [&](void* c) { return rpc_mount3_mnt_async(m_rpc, on_answer, path.data(), c); };
  const auto called = call(issue, take, deadline);
  if (!called)
    return fail(called.error());
  return result;
}

Result<void> RpcConnection::mount_umnt(const std::string& directory, Deadline deadline) {
  std::string path = directory;
  return call([&](void* c) { return rpc_mount3_umnt_async(m_rpc, on_answer, path.data(), c); }, nullptr, deadline);
}

} // namespace sharefs::sys

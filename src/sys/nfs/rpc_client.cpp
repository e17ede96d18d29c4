#include "sys/nfs/rpc_client.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <new>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <type_traits>

// The order matters: libnfs's headers use types of each other without including them.
#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs4.h>
#include <nfsc/libnfs-raw-portmap.h>

#ifdef SHAREFS_LIBNFS_HAS_TASKS // libnfs 6 and later; cmake/Dependencies.cmake sets it
#define LIBNFS_CALL(name) rpc_##name##_task
#else
#define LIBNFS_CALL(name) rpc_##name##_async
#endif

namespace sharefs::sys {
namespace {

constexpr std::uint32_t k_auth_none = 0, k_auth_sys = 1, k_max_flavors = 64;

/// True if libnfs has queued a call: it returns 0, or since version 6 an object.
template <class Queued> bool is_queued(Queued queued) {
  if constexpr (std::is_pointer_v<Queued>)
    return queued != nullptr;
  else
    return queued == 0;
}

/// Replaces control characters in a name, which could move a terminal's cursor.
std::string printable(const char* name) {
  std::string text(name == nullptr ? "" : name);
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

/// Reads an error message of libnfs, which has a message only if the server has refused a call.
ServerAnswer parse_refusal(std::string_view words) {
  const auto has = [words](std::string_view part) { return words.find(part) != std::string_view::npos; };
  if (has("not available") || has("version mismatch"))
    return {Fault::unsupported};
  return {has("not accepted") || has("Garbage arguments") || has("System Error") ? Fault::refused : Fault::unreadable};
}

/// Returns the port in a universal address (RFC 1833), which is the last two numbers of "::.8.1"; 0 if it is not one.
std::uint16_t port_in(std::string_view universal_address) {
  const auto numbers = split(universal_address, '.');
  if (numbers.size() < 3)
    return 0;
  const auto high = parse_number<std::uint8_t>(numbers.end()[-2]), low = parse_number<std::uint8_t>(numbers.back());
  return high && low ? static_cast<std::uint16_t>(*high << 8U | *low) : std::uint16_t{0};
}

/// Converts a status of NFS or mountd: both use the same error numbers, and 0 for no error.
template <class Status> ServerAnswer convert_status(Status status) {
  return {status == 0 ? Fault::none : Fault::status, static_cast<int>(status)};
}

/// True if the connection is closed.
bool has_ended(const pollfd& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

} // namespace

RpcClient::RpcClient(Fd connected, uid_t uid, gid_t gid) : m_context(::nfs_init_context(), ::nfs_destroy_context) {
  if (!m_context)
    throw std::bad_alloc();
  ::nfs_set_autoreconnect(m_context.get(), 0);
  m_rpc = ::nfs_get_rpc_context(m_context.get());
  ::rpc_set_auth(m_rpc, ::libnfs_authunix_create("sharefs", uid, gid, 0, nullptr));
  ::rpc_set_fd(m_rpc, connected.release());
  ::rpc_service(m_rpc, POLLOUT); // libnfs checks here whether the connection is established
}

void RpcClient::finish(rpc_context*, int status, void* result, void* call) {
  auto& finished = *static_cast<Call*>(call);
  finished.done = true;
  if (status == RPC_STATUS_SUCCESS)
    finished.answer = finished.read ? finished.read(result) : ServerAnswer();
  else
    finished.answer =
        parse_refusal(status == RPC_STATUS_ERROR && result != nullptr ? static_cast<const char*>(result) : "");
}

template <class Queue> ServerAnswer RpcClient::call(Deadline until, const Queue& queue, Read read) {
  m_call = {std::move(read), false, {}};
  if (!is_queued(queue(finish, &m_call)))
    return {Fault::not_asked, ENOMEM};
  while (!m_call.done) {
    pollfd socket{::rpc_get_fd(m_rpc), static_cast<short>(::rpc_which_events(m_rpc)), 0};
    if (Clock::now() >= until || ::poll(&socket, 1, poll_time(until)) == 0)
      return {Fault::timeout};
    if (has_ended(socket))
      return {Fault::closed};
    if (::rpc_service(m_rpc, socket.revents & (POLLIN | POLLOUT)) != 0)
      return {Fault::unreadable};
  }
  return m_call.answer;
}

ServerAnswer RpcClient::null(std::uint32_t program, std::uint32_t version, Deadline until) {
  return call(until, [&](rpc_cb reply, void* call) {
    return LIBNFS_CALL(null)(m_rpc, static_cast<int>(program), static_cast<int>(version), reply, call);
  });
}

ServerAnswer RpcClient::look_up(const std::vector<std::string>& names, std::uint32_t minor, Deadline until) {
  std::vector<nfs_argop4> steps(1 + names.size() + 1);
  steps.front().argop = OP_PUTROOTFH;
  std::uint32_t type = 1U << 1U; // FATTR4_TYPE
  steps.back().argop = OP_GETATTR;
  steps.back().nfs_argop4_u.opgetattr.attr_request = {1, &type};
  for (std::size_t i = 0; i < names.size(); ++i) {
    component4& name = steps[i + 1].nfs_argop4_u.oplookup.objname;
    steps[i + 1].argop = OP_LOOKUP;
    name.utf8string_len = static_cast<u_int>(names[i].size());
    name.utf8string_val = const_cast<char*>(names[i].data());
  }
  COMPOUND4args arguments{};
  arguments.minorversion = minor;
  arguments.argarray.argarray_len = static_cast<u_int>(steps.size());
  arguments.argarray.argarray_val = steps.data();
  return call(
      until, [&](rpc_cb reply, void* call) { return LIBNFS_CALL(nfs4_compound)(m_rpc, reply, &arguments, call); },
      [](const void* result) { return convert_status(static_cast<const COMPOUND4res*>(result)->status); });
}

ServerAnswer RpcClient::find_mountd(bool over_ipv6, std::uint16_t& port, Deadline until) {
  if (!over_ipv6)
    return call(
        until,
        [&](rpc_cb reply, void* call) {
          return LIBNFS_CALL(pmap2_getport)(m_rpc, k_program_mount, 3, IPPROTO_TCP, reply, call);
        },
        [&port](const void* result) {
          port = static_cast<std::uint16_t>(*static_cast<const std::uint32_t*>(result));
          return ServerAnswer();
        });
  std::string network = "tcp6", nothing;
  pmap3_mapping mapping{k_program_mount, 3, network.data(), nothing.data(), nothing.data()};
  return call(
      until, [&](rpc_cb reply, void* call) { return LIBNFS_CALL(pmap3_getaddr)(m_rpc, &mapping, reply, call); },
      [&port](const void* result) {
        const char* const address = static_cast<const pmap3_string_result*>(result)->addr;
        port = address == nullptr ? std::uint16_t{0} : port_in(address);
        return ServerAnswer();
      });
}

ServerAnswer RpcClient::list_exports(std::vector<ExportListing>& exports, Deadline until) {
  const auto read = [&exports](const void* result) {
    for (const auto* one = *static_cast<const exportnode* const*>(result); one != nullptr; one = one->ex_next) {
      auto& listing = exports.emplace_back(printable(one->ex_dir));
      for (const groupnode* group = one->ex_groups; group != nullptr; group = group->gr_next)
        listing.clients.push_back(printable(group->gr_name));
    }
    return ServerAnswer();
  };
  return call(until, [&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_export)(m_rpc, reply, call); }, read);
}

ServerAnswer RpcClient::mount(const std::string& path, Deadline until) {
  auto* const name = const_cast<char*>(path.c_str());
  const auto read = [](const void* result) -> ServerAnswer {
    const auto& answer = *static_cast<const mountres3*>(result);
    if (answer.fhs_status != MNT3_OK)
      return convert_status(answer.fhs_status);
    const auto& [handle, flavors] = answer.mountres3_u.mountinfo;
    if (handle.fhandle3_len > FHSIZE3 || flavors.auth_flavors_len > k_max_flavors)
      return {Fault::unreadable};
    const auto* const begin = flavors.auth_flavors_val;
    const bool has_others = std::any_of(begin, begin + flavors.auth_flavors_len, [](auto flavor) {
      return static_cast<std::uint32_t>(flavor) == k_auth_sys || static_cast<std::uint32_t>(flavor) == k_auth_none;
    });
    return {flavors.auth_flavors_len > 0 && !has_others ? Fault::only_kerberos : Fault::none};
  };
  const ServerAnswer mounted =
      call(until, [&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_mnt)(m_rpc, reply, name, call); }, read);
  if (mounted.fault == Fault::none || mounted.fault == Fault::only_kerberos)
    call(until, [&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_umnt)(m_rpc, reply, name, call); });
  return mounted;
}

} // namespace sharefs::sys

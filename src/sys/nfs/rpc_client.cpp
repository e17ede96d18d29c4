#include "sys/nfs/rpc_client.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <netinet/in.h>
#include <new>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <type_traits>

// libnfs's headers stand on each other, and use these types without including them.
#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs4.h>
#include <nfsc/libnfs-raw-portmap.h>

#ifdef SHAREFS_LIBNFS_HAS_TASKS // libnfs 6 and later; cmake/Dependencies.cmake looks
#define LIBNFS_CALL(name) rpc_##name##_task
#else
#define LIBNFS_CALL(name) rpc_##name##_async
#endif

namespace sharefs::sys {
namespace {

constexpr std::uint32_t k_auth_none = 0, k_auth_sys = 1, k_max_flavors = 64;

/// How libnfs reports that a call is on its way: by 0, or since version 6 by an object.
template <class Queued> bool is_queued(Queued queued) {
  if constexpr (std::is_pointer_v<Queued>)
    return queued != nullptr;
  else
    return queued == 0;
}

/// A name for messages and comparisons: nothing in it that moves a terminal's cursor. nullopt if it is too long.
std::optional<std::string> printable(const char* name) {
  std::string text(name == nullptr ? "" : name);
  std::ranges::replace_if(text, is_control, '?');
  return text.size() > k_max_name ? std::nullopt : std::optional(text);
}

/// libnfs has words only for what a server has refused.
Failure refusal(std::string_view words) {
  const auto has = [words](std::string_view part) { return words.find(part) != std::string_view::npos; };
  if (has("not available") || has("version mismatch"))
    return {Fault::unsupported};
  return {has("not accepted") || has("Garbage arguments") || has("System Error") ? Fault::refused : Fault::unreadable};
}

template <class T> Answer<T> answer_or(const Failure& failed, T answer) {
  if (failed.fault != Fault::none)
    return tl::make_unexpected(failed);
  return answer;
}

/// The port in an address of RFC 1833: the last two numbers of "::.8.1"; 0 for what is none.
std::uint16_t port_in(std::string_view universal_address) {
  unsigned port = 0;
  const auto numbers = split(universal_address, '.');
  if (numbers.size() < 3)
    return 0;
  for (const auto& number : {numbers.end()[-2], numbers.end()[-1]}) {
    std::uint8_t value = 0;
    const char* const end = number.data() + number.size();
    if (const auto [last, error] = std::from_chars(number.data(), end, value); error != std::errc() || last != end)
      return 0;
    port = port << 8U | value;
  }
  return static_cast<std::uint16_t>(port);
}

/// Nothing more will come.
bool has_ended(const pollfd& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

} // namespace

Caller own_caller() {
  std::array<char, 256> host{}; // the longest name that AUTH_SYS takes is 255 bytes
  ::gethostname(host.data(), host.size() - 1);
  return {host.data(), ::geteuid(), ::getegid()};
}

RpcClient::RpcClient(Fd connected, const Caller& caller)
    : m_context(::nfs_init_context(), ::nfs_destroy_context), m_rpc(nullptr) {
  if (!m_context)
    throw std::bad_alloc();
  ::nfs_set_autoreconnect(m_context.get(), 0);
  m_rpc = ::nfs_get_rpc_context(m_context.get());
  ::rpc_set_auth(m_rpc, ::libnfs_authunix_create(caller.host.c_str(), caller.uid, caller.gid, 0, nullptr));
  ::rpc_set_fd(m_rpc, connected.release());
  ::rpc_service(m_rpc, POLLOUT); // it asks whether the connection is made
}

void RpcClient::finish(rpc_context*, int status, void* result, void* call) {
  auto& finished = *static_cast<Call*>(call);
  finished.done = true;
  if (status == RPC_STATUS_SUCCESS)
    finished.failure = finished.read ? finished.read(result) : Failure();
  else
    finished.failure = refusal(status == RPC_STATUS_ERROR && result != nullptr ? static_cast<const char*>(result) : "");
}

Failure RpcClient::call(Deadline until, const Queue& queue, std::function<Failure(const void* result)> read) {
  m_call = {std::move(read), false, {}};
  if (!queue(finish, &m_call))
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
  return m_call.failure;
}

Failure RpcClient::null(std::uint32_t program, std::uint32_t version, Deadline until) {
  return call(until, [&](rpc_cb reply, void* call) {
    const auto number = static_cast<int>(program);
    return is_queued(LIBNFS_CALL(null)(m_rpc, number, static_cast<int>(version), reply, call));
  });
}

Answer<std::uint32_t> RpcClient::look_up(const std::vector<std::string>& names, Deadline until) {
  std::vector<nfs_argop4> steps(1 + names.size());
  steps[0].argop = OP_PUTROOTFH;
  for (std::size_t i = 0; i < names.size(); ++i) {
    component4& name = steps[i + 1].nfs_argop4_u.oplookup.objname;
    steps[i + 1].argop = OP_LOOKUP;
    name.utf8string_len = static_cast<u_int>(names[i].size());
    name.utf8string_val = const_cast<char*>(names[i].data());
  }
  COMPOUND4args compound{};
  compound.argarray.argarray_len = static_cast<u_int>(steps.size());
  compound.argarray.argarray_val = steps.data();
  std::uint32_t status = 0;
  const Failure failed = call(
      until,
      [&](rpc_cb reply, void* call) { return is_queued(LIBNFS_CALL(nfs4_compound)(m_rpc, reply, &compound, call)); },
      [&status](const void* result) {
        status = static_cast<std::uint32_t>(static_cast<const COMPOUND4res*>(result)->status);
        return Failure();
      });
  return answer_or(failed, status);
}

Answer<std::uint16_t> RpcClient::mountd_port(bool over_ipv6, Deadline until) {
  std::uint16_t port = 0;
  std::string network = "tcp6", nothing;
  pmap3_mapping mapping{k_program_mount, 3, network.data(), nothing.data(), nothing.data()};
  const auto read = [&port, over_ipv6](const void* result) -> Failure {
    if (!over_ipv6)
      port = static_cast<std::uint16_t>(*static_cast<const std::uint32_t*>(result));
    else if (const char* const address = static_cast<const pmap3_string_result*>(result)->addr; address != nullptr)
      port = port_in(address);
    return {};
  };
  const auto queue = [&](rpc_cb reply, void* call) {
    constexpr int program = k_program_mount;
    return over_ipv6 ? is_queued(LIBNFS_CALL(pmap3_getaddr)(m_rpc, &mapping, reply, call))
                     : is_queued(LIBNFS_CALL(pmap2_getport)(m_rpc, program, 3, IPPROTO_TCP, reply, call));
  };
  const Failure failed = call(until, queue, read);
  return answer_or(failed, port);
}

Answer<std::vector<ExportListing>> RpcClient::exports(Deadline until) {
  std::vector<ExportListing> found;
  const auto read = [&found](const void* result) -> Failure {
    std::size_t entries = 0;
    for (const auto* one = *static_cast<const exportnode* const*>(result); one != nullptr; one = one->ex_next) {
      const auto directory = printable(one->ex_dir);
      if (!directory || ++entries > k_max_entries)
        return {Fault::unreadable};
      found.push_back({*directory, {}});
      for (const groupnode* group = one->ex_groups; group != nullptr; group = group->gr_next) {
        const auto client = printable(group->gr_name);
        if (!client || ++entries > k_max_entries)
          return {Fault::unreadable};
        found.back().clients.push_back(*client);
      }
    }
    return {};
  };
  const Failure failed = call(
      until, [&](rpc_cb reply, void* call) { return is_queued(LIBNFS_CALL(mount3_export)(m_rpc, reply, call)); }, read);
  return answer_or(failed, std::move(found));
}

Failure RpcClient::mount(const std::string& path, Deadline until) {
  auto* const name = const_cast<char*>(path.c_str());
  const auto read = [](const void* result) -> Failure {
    const auto& answer = *static_cast<const mountres3*>(result);
    if (answer.fhs_status != MNT3_OK)
      return {Fault::status, static_cast<int>(answer.fhs_status)};
    const auto& [handle, flavors] = answer.mountres3_u.mountinfo;
    if (handle.fhandle3_len > FHSIZE3 || flavors.auth_flavors_len > k_max_flavors)
      return {Fault::unreadable};
    const auto* const begin = flavors.auth_flavors_val;
    const bool has_others = std::any_of(begin, begin + flavors.auth_flavors_len, [](auto flavor) {
      return static_cast<std::uint32_t>(flavor) == k_auth_sys || static_cast<std::uint32_t>(flavor) == k_auth_none;
    });
    return {flavors.auth_flavors_len > 0 && !has_others ? Fault::only_kerberos : Fault::none};
  };
  const Failure mounted = call(
      until, [&](rpc_cb reply, void* call) { return is_queued(LIBNFS_CALL(mount3_mnt)(m_rpc, reply, name, call)); },
      read);
  if (mounted.fault == Fault::none || mounted.fault == Fault::only_kerberos)
    call(until,
         [&](rpc_cb reply, void* call) { return is_queued(LIBNFS_CALL(mount3_umnt)(m_rpc, reply, name, call)); });
  return mounted;
}

} // namespace sharefs::sys

#include "sys/nfs/rpc.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace sharefs::sys {
namespace {

constexpr std::uint32_t k_call = 0, k_reply = 1, k_rpc_version = 2, k_last_fragment = 0x80000000U;
constexpr std::uint32_t k_auth_none = 0, k_auth_sys = 1;
constexpr std::size_t k_max_verifier = 400, k_max_flavors = 64; // RFC 5531, ours
constexpr std::size_t k_chunk = 65536;
constexpr std::size_t k_fragment_cost = 1024; ///< bytes that each counts for, or empty ones would never end

/// A name for messages and comparisons: nothing in it that moves a terminal's cursor.
std::string printable(std::string_view name) {
  std::string text(name);
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

/// Wait until the socket can be read or written.
Answer<void> wait_for(int fd, short events, Deadline deadline) {
  pollfd socket{fd, events, 0};
  if (Clock::now() >= deadline || ::poll(&socket, 1, poll_time(deadline)) == 0)
    return failure(Fault::timeout);
  return {};
}

} // namespace

std::string own_credential(std::span<const gid_t> groups) {
  std::array<char, 256> host{}; // the longest name that AUTH_SYS takes is 255 bytes
  ::gethostname(host.data(), host.size() - 1);
  XdrWriter body;
  body.word(0).text(host.data()).word(::geteuid()).word(::getegid()); // the first is a stamp
  groups = groups.first(std::min(groups.size(), k_max_groups));
  body.word(static_cast<std::uint32_t>(groups.size()));
  for (const gid_t group : groups)
    body.word(group);
  return XdrWriter().word(k_auth_sys).text(body.bytes()).bytes();
}

std::string call_record(std::uint32_t xid, const RpcProcedure& procedure, std::string_view credential,
                        std::string_view arguments) {
  const XdrWriter message = XdrWriter()
                                .word(xid)
                                .word(k_call)
                                .word(k_rpc_version)
                                .word(procedure.program)
                                .word(procedure.version)
                                .word(procedure.number)
                                .raw(credential)
                                .word(k_auth_none)
                                .word(0)
                                .raw(arguments);
  const auto size = static_cast<std::uint32_t>(message.bytes().size());
  return XdrWriter().word(k_last_fragment | size).raw(message.bytes()).bytes();
}

Answer<void> RecordReader::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!m_in_fragment) {
      const auto part = bytes.substr(0, sizeof(std::uint32_t) - m_mark.size());
      m_mark += part;
      bytes.remove_prefix(part.size());
      if (m_mark.size() < sizeof(std::uint32_t))
        break;
      const std::uint32_t word = XdrReader(m_mark).word();
      m_mark.clear();
      m_left = word & ~k_last_fragment;
      m_is_last = (word & k_last_fragment) != 0;
      m_in_fragment = true;
      m_counted += k_fragment_cost + m_left;
      if (m_counted > m_most)
        return failure(Fault::unreadable);
    }
    const auto part = bytes.substr(0, m_left);
    m_record += part; // memory is taken as bytes come, not as the server announces them
    bytes.remove_prefix(part.size());
    m_left -= part.size();
    if (m_left > 0)
      break;
    m_in_fragment = false;
    if (m_is_last) {
      m_whole.push_back(std::exchange(m_record, {}));
      m_counted = 0;
    }
  }
  return {};
}

std::optional<std::string> RecordReader::next() {
  if (m_whole.empty())
    return std::nullopt;
  auto record = std::move(m_whole.front());
  m_whole.pop_front();
  return record;
}

Answer<std::string_view> read_reply(std::string_view record, std::uint32_t xid) {
  XdrReader reader(record);
  if (reader.word() != xid || reader.word() != k_reply)
    return failure(Fault::unreadable);
  const std::uint32_t denied = reader.word();
  if (!reader.ok() || denied > 1)
    return failure(Fault::unreadable);
  if (denied == 1)
    return failure(Fault::refused);
  reader.word(); // flavor of the verifier
  reader.text(k_max_verifier);
  const std::uint32_t state = reader.word();
  if (!reader.ok() || state > 5)
    return failure(Fault::unreadable);
  if (state >= 1 && state <= 3) // PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL
    return failure(Fault::unsupported);
  if (state != 0) // GARBAGE_ARGS, SYSTEM_ERR
    return failure(Fault::refused);
  return reader.rest();
}

Answer<std::vector<RpcMapping>> read_mappings(std::string_view result) {
  XdrReader reader(result);
  std::vector<RpcMapping> mappings;
  while (reader.more() && mappings.size() < k_max_entries) {
    const std::uint32_t program = reader.word(), version = reader.word(), protocol = reader.word();
    mappings.push_back({program, version, protocol, reader.word()});
  }
  if (!reader.ok() || mappings.size() == k_max_entries)
    return failure(Fault::unreadable);
  return mappings;
}

Answer<std::vector<RpcMapping>> read_mappings_of_ipv6(std::string_view result) {
  XdrReader reader(result);
  std::vector<RpcMapping> mappings;
  std::size_t entries = 0;
  while (entries < k_max_entries && reader.more()) {
    ++entries;
    const std::uint32_t program = reader.word(), version = reader.word();
    const std::string_view network = reader.text(k_max_name), address = reader.text(k_max_name);
    reader.text(k_max_name); // the owner
    const auto low = address.rfind('.');
    const auto high = low == std::string_view::npos || low == 0 ? low : address.rfind('.', low - 1);
    if (network != "tcp6" || high == std::string_view::npos || high == low)
      continue;
    const auto number = [](std::string_view digits) {
      std::uint8_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc() && end == digits.data() + digits.size() ? std::uint32_t{value} : 0U;
    };
    const auto port = number(address.substr(high + 1, low - high - 1)) << 8U | number(address.substr(low + 1));
    mappings.push_back({program, version, std::uint32_t{IPPROTO_TCP}, port});
  }
  if (!reader.ok() || entries >= k_max_entries)
    return failure(Fault::unreadable);
  return mappings;
}

Answer<std::vector<ExportListing>> read_exports(std::string_view result) {
  XdrReader reader(result);
  std::vector<ExportListing> exports;
  std::size_t entries = 0;
  while (entries < k_max_entries && reader.more()) {
    ExportListing one{printable(reader.text(k_max_name)), {}};
    while (++entries < k_max_entries && reader.more())
      one.clients.push_back(printable(reader.text(k_max_name)));
    exports.push_back(std::move(one));
  }
  if (!reader.ok() || entries >= k_max_entries)
    return failure(Fault::unreadable);
  return exports;
}

Answer<MountReply> read_mount_reply(std::string_view result) {
  XdrReader reader(result);
  MountReply reply{reader.word(), false};
  if (reader.ok() && reply.status == 0) {
    reader.text(k_max_handle);
    const std::size_t count = reader.word();
    if (count > k_max_flavors)
      return failure(Fault::unreadable);
    reply.only_kerberos = count > 0;
    for (std::size_t i = 0; i < count; ++i)
      if (const std::uint32_t flavor = reader.word(); flavor == k_auth_sys || flavor == k_auth_none)
        reply.only_kerberos = false;
  }
  if (!reader.ok())
    return failure(Fault::unreadable);
  return reply;
}

Answer<MountReply> read_compound_status(std::string_view result) {
  constexpr std::uint32_t wrong_security = 10016, minor_version_mismatch = 10021; // RFC 7530
  XdrReader reader(result);
  const std::uint32_t status = reader.word();
  if (!reader.ok())
    return failure(Fault::unreadable);
  if (status == minor_version_mismatch)
    return failure(Fault::unsupported);
  return status == wrong_security ? MountReply{0, true} : MountReply{status, false};
}

Answer<void> RpcConnection::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0)
      bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (count < 0 && errno != EAGAIN && errno != EINTR)
      return failure(Fault::closed); // reset, or the network has gone
    else if (const auto ready = wait_for(m_fd.get(), POLLOUT, deadline); !ready)
      return ready;
  }
  return {};
}

Answer<std::string> RpcConnection::receive_record(Deadline deadline) {
  std::string bytes(k_chunk, '\0');
  for (;;) {
    if (auto record = m_records.next())
      return std::move(*record);
    const ssize_t count = ::recv(m_fd.get(), bytes.data(), bytes.size(), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
      return failure(Fault::closed); // reset, or the network has gone
    const auto taken = count > 0 ? m_records.add({bytes.data(), static_cast<std::size_t>(count)})
                                 : wait_for(m_fd.get(), POLLIN, deadline);
    if (!taken)
      return tl::make_unexpected(taken.error());
  }
}

Answer<std::string> RpcConnection::call(const RpcProcedure& procedure, std::string_view arguments, Deadline deadline) {
  if (const auto sent = send(call_record(++m_xid, procedure, m_credential, arguments), deadline); !sent)
    return tl::make_unexpected(sent.error());
  auto record = receive_record(deadline);
  if (!record)
    return record;
  return read_reply(*record, m_xid).map([](std::string_view result) { return std::string(result); });
}

} // namespace sharefs::sys

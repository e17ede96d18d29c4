#include "sys/nfs/rpc.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace sharefs::sys {
namespace {

constexpr std::uint32_t k_call = 0, k_reply = 1, k_rpc_version = 2, k_last_fragment = 0x80000000U;
constexpr std::uint32_t k_auth_none = 0, k_auth_sys = 1;
constexpr std::size_t k_max_verifier = 400, k_max_handle = 64, k_max_flavors = 64; // RFC 5531, RFC 1813, ours
constexpr std::size_t k_chunk = 65536;
constexpr std::size_t k_fragment_cost = 1024; ///< bytes that each counts for, or empty ones would never end

/// Reads XDR. Past the end or past a bound all is zero or empty, and ok() is false from then on.
class XdrReader {
 public:
  explicit XdrReader(std::string_view bytes) : m_rest(bytes) {}

  std::uint32_t word() {
    std::uint32_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value)
      std::memcpy(&value, bytes.data(), sizeof value);
    return ntohl(value);
  }
  std::string_view text(std::size_t at_most) {
    const std::size_t size = word();
    if (size > at_most)
      return fail();
    const std::string_view padded = take((size + 3) / 4 * 4);
    return padded.substr(0, size);
  }
  /// The "one more" before each entry of a list.
  bool more() {
    const std::uint32_t value = word();
    if (value > 1)
      fail();
    return m_ok && value == 1;
  }
  std::string_view fail() {
    m_ok = false;
    return m_rest = {};
  }
  [[nodiscard]] bool ok() const { return m_ok; }
  [[nodiscard]] std::string_view rest() const { return m_rest; }

 private:
  std::string_view take(std::size_t size) {
    if (size > m_rest.size())
      return fail();
    const std::string_view taken = m_rest.substr(0, size);
    m_rest.remove_prefix(size);
    return taken;
  }

  std::string_view m_rest;
  bool m_ok = true;
};

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

XdrWriter& XdrWriter::word(std::uint32_t value) {
  const std::uint32_t network = htonl(value);
  m_bytes.append(reinterpret_cast<const char*>(&network), sizeof network);
  return *this;
}

XdrWriter& XdrWriter::text(std::string_view value) {
  word(static_cast<std::uint32_t>(value.size())).raw(value);
  m_bytes.append((4 - value.size() % 4) % 4, '\0');
  return *this;
}

XdrWriter& XdrWriter::raw(std::string_view bytes) {
  m_bytes.append(bytes);
  return *this;
}

std::string own_credential() {
  std::array<char, 256> host{}; // the longest name that AUTH_SYS takes is 255 bytes
  ::gethostname(host.data(), host.size() - 1);
  const XdrWriter body =
      XdrWriter().word(0).text(host.data()).word(::geteuid()).word(::getegid()).word(0); // stamp, name, ids, no groups
  return XdrWriter().word(k_auth_sys).text(body.bytes()).bytes();
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

Answer<std::string> RpcConnection::receive(std::size_t size, Deadline deadline) {
  std::string bytes;
  // Memory is taken as bytes come, not as the server announces them.
  while (bytes.size() < size) {
    const std::size_t before = bytes.size();
    bytes.resize(before + std::min(size - before, k_chunk));
    const ssize_t count = ::recv(m_fd.get(), bytes.data() + before, bytes.size() - before, 0);
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0)
      return failure(Fault::closed);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
      return failure(Fault::closed); // reset, or the network has gone
    if (count < 0)
      if (const auto ready = wait_for(m_fd.get(), POLLIN, deadline); !ready)
        return tl::make_unexpected(ready.error());
  }
  return bytes;
}

Answer<std::string> RpcConnection::receive_record(Deadline deadline) {
  std::string record;
  for (std::size_t received = 0;;) {
    const auto mark = receive(sizeof(std::uint32_t), deadline);
    if (!mark)
      return mark;
    const std::uint32_t word = XdrReader(*mark).word();
    const std::size_t size = word & ~k_last_fragment;
    received += k_fragment_cost + size;
    if (received > k_max_reply)
      return failure(Fault::unreadable);
    const auto fragment = receive(size, deadline);
    if (!fragment)
      return fragment;
    record += *fragment;
    if ((word & k_last_fragment) != 0)
      return record;
  }
}

Answer<std::string> RpcConnection::call(const RpcProcedure& procedure, std::string_view arguments, Deadline deadline) {
  const XdrWriter message = XdrWriter()
                                .word(++m_xid)
                                .word(k_call)
                                .word(k_rpc_version)
                                .word(procedure.program)
                                .word(procedure.version)
                                .word(procedure.number)
                                .raw(m_credential)
                                .word(k_auth_none)
                                .word(0)
                                .raw(arguments);
  const auto size = static_cast<std::uint32_t>(message.bytes().size());
  if (const auto sent = send(XdrWriter().word(k_last_fragment | size).raw(message.bytes()).bytes(), deadline); !sent)
    return tl::make_unexpected(sent.error());
  const auto record = receive_record(deadline);
  if (!record)
    return record;
  return read_reply(*record, m_xid).map([](std::string_view result) { return std::string(result); });
}

} // namespace sharefs::sys

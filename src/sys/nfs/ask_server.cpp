#include "sys/nfs/ask_server.hpp"

#include "sys/nfs/net.hpp"
#include "sys/process/sandbox.hpp"

#include <cerrno>
#include <netinet/in.h>

namespace sharefs::sys {
namespace {

class Asking {
 public:
  Asking(const NfsProbeRequest& request, const NfsPorts& ports, int fd)
      : m_request(request), m_ports(ports), m_fd(fd), m_deadline(deadline_in(request.timeout)) {}

  void run() {
    const bool may_reserve = ::geteuid() == 0;
    if (may_reserve) {
      m_for_mountd = reserve_sockets();
      m_for_nfs4 = reserve_sockets();
    }
    m_credential = own_credential(); // of the user who would mount, not of nobody
    if (!walled(drop_privileges()) || !resolve() || !walled(restrict_to_network()))
      return;
    connect();
    if (m_answers[ProbeStage::connect].failure.fault == Fault::none) {
      ask_nfs(ProbeStage::nfs3, {k_program_nfs, 3, 0}, {}, {});
      ask_nfs4();
    }
    const Failure connected = m_answers[ProbeStage::connect].failure;
    if (connected.fault == Fault::none || connected.error_number == ECONNREFUSED)
      ask_portmapper();
    if (connected.fault == Fault::none && m_answers.mountd_port != 0)
      ask_mountd();
  }

 private:
  /// A part of the time that is left, so that one silent stage leaves some for the others.
  [[nodiscard]] Deadline part_of_time(int percent) const {
    const auto now = Clock::now();
    return m_deadline <= now ? m_deadline : now + (m_deadline - now) * percent / 100;
  }

  void finish(ProbeStage stage, Deadline begin, const Failure& failure = {}) {
    m_answers[stage] = {true, failure, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)};
    write_all(m_fd, encode(m_answers));
  }

  bool walled(int error) {
    if (error != 0)
      finish(ProbeStage::resolve, Clock::now(), {Fault::not_asked, error});
    return error == 0;
  }

  bool resolve() {
    const auto begin = Clock::now();
    auto addresses = resolve_host(m_request.host);
    if (!addresses) {
      finish(ProbeStage::resolve, begin, addresses.error());
      return false;
    }
    m_addresses = std::move(*addresses);
    for (const Address& address : m_addresses)
      m_answers.addresses.push_back(address.text);
    finish(ProbeStage::resolve, begin);
    return true;
  }

  void connect() {
    const auto begin = Clock::now();
    auto connection = connect_tcp(m_addresses, m_ports.nfs, m_deadline);
    if (!connection)
      return finish(ProbeStage::connect, begin, connection.error());
    m_addresses = {m_addresses[connection->index]};
    m_answers.used = static_cast<std::uint32_t>(connection->index);
    m_nfs = std::move(connection->fd);
    finish(ProbeStage::connect, begin);
  }

  /// A connection for each version: after a time-out the old one is of no use.
  Failure ask_nfs(ProbeStage stage, const RpcProcedure& procedure, std::string_view arguments,
                  ReservedSockets reserved) {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(40);
    auto answer = Answer<std::string>();
    if (!m_nfs) {
      auto connection = connect_tcp(m_addresses, m_ports.nfs, until, std::move(reserved));
      if (!connection)
        answer = failure(Fault::closed);
      else
        m_nfs = std::move(connection->fd);
    }
    if (answer)
      answer = RpcConnection(std::move(m_nfs), m_credential).call(procedure, arguments, until);
    const Failure failed = answer ? Failure() : answer.error();
    finish(stage, begin, failed);
    return failed;
  }

  /// Version 4 is asked for its root: unlike NULL, which the kernel answers by itself, this takes a living mountd.
  void ask_nfs4() {
    constexpr std::uint32_t put_root_handle = 24; // RFC 7530; tag, minor version, number of operations before it
    const XdrWriter compound = XdrWriter().text("").word(0).word(1).word(put_root_handle);
    const Failure failed = ask_nfs(ProbeStage::nfs4, {k_program_nfs, 4, 1}, compound.bytes(), std::move(m_for_nfs4));
    if (failed.fault == Fault::refused) // who wants Kerberos says so to all but NULL
      ask_nfs(ProbeStage::nfs4, {k_program_nfs, 4, 0}, {}, {});
  }

  void ask_portmapper() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(50);
    auto connection = connect_tcp(m_addresses, m_ports.portmapper, until);
    if (!connection)
      return finish(ProbeStage::portmapper, begin, connection.error());
    const auto mappings = RpcConnection(std::move(connection->fd), m_credential)
                              .call(k_portmapper_dump, {}, until)
                              .and_then(read_mappings);
    if (!mappings)
      return finish(ProbeStage::portmapper, begin, mappings.error());
    m_answers.services = static_cast<std::uint32_t>(mappings->size());
    for (const RpcMapping& mapping : *mappings) {
      if (mapping.protocol != IPPROTO_TCP)
        continue;
      if (mapping.program == k_program_mount && mapping.version == 3)
        m_answers.mountd_port = static_cast<std::uint16_t>(mapping.port);
      if (mapping.program == k_program_nfs)
        m_answers.nfs_port = static_cast<std::uint16_t>(mapping.port);
    }
    finish(ProbeStage::portmapper, begin);
    if (m_answers.mountd_port == 0)
      finish(ProbeStage::mountd, Clock::now(), {Fault::unregistered});
  }

  void ask_mountd() {
    auto begin = Clock::now();
    const Deadline until = part_of_time(70);
    auto connection = connect_tcp(m_addresses, m_answers.mountd_port, until, std::move(m_for_mountd));
    if (!connection)
      return finish(ProbeStage::mountd, begin, connection.error());
    RpcConnection rpc(std::move(connection->fd), m_credential);
    if (const auto answer = rpc.call({k_program_mount, 3, 0}, {}, until); !answer)
      return finish(ProbeStage::mountd, begin, answer.error());
    finish(ProbeStage::mountd, begin);

    begin = Clock::now();
    auto exports = rpc.call(k_mount_export, {}, until).and_then(read_exports);
    if (!exports)
      return finish(ProbeStage::exports, begin, exports.error());
    m_answers.exports = std::move(*exports);
    finish(ProbeStage::exports, begin, {m_answers.exports.empty() ? Fault::nothing : Fault::none});
    if (m_request.want_access)
      ask_access(rpc);
  }

  void ask_access(RpcConnection& rpc) {
    const auto begin = Clock::now();
    for (const std::string& path : access_paths(m_request, m_answers.exports)) {
      const std::string argument = XdrWriter().text(path).bytes();
      const auto reply = rpc.call(k_mount_mnt, argument, m_deadline).and_then(read_mount_reply);
      m_answers.access.push_back(reply ? AccessAnswer{{}, *reply} : AccessAnswer{reply.error(), {}});
      // UMNT takes us out of the server's list of mounts again.
      if (!reply || (reply->status == 0 && !rpc.call(k_mount_umnt, argument, m_deadline)))
        break;
    }
    if (!m_answers.access.empty())
      finish(ProbeStage::access, begin);
  }

  const NfsProbeRequest& m_request;
  NfsPorts m_ports;
  int m_fd;
  Deadline m_deadline;
  ServerAnswers m_answers;
  std::vector<Address> m_addresses;
  ReservedSockets m_for_mountd, m_for_nfs4;
  std::string m_credential;
  Fd m_nfs;
};

} // namespace

std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports) {
  if (!request.paths.empty())
    return request.paths;
  std::vector<std::string> paths;
  for (const ExportListing& one : exports)
    paths.push_back(one.directory);
  return paths;
}

void ask_server(const NfsProbeRequest& request, const NfsPorts& ports, int fd) {
  Asking(request, ports, fd).run();
}

} // namespace sharefs::sys

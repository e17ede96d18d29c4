#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/net/connect.hpp"
#include "sys/nfs/rpc_client.hpp"
#include "sys/process/sandbox.hpp"

#include <cerrno>

namespace sharefs::sys {
namespace {

/// The status of NFS 4 as what MNT would have said.
Failure failure_of_look_up(std::uint32_t status) {
  constexpr std::uint32_t wrong_security = 10016, minor_version_mismatch = 10021; // RFC 7530
  if (status == wrong_security)
    return {Fault::only_kerberos};
  if (status == minor_version_mismatch)
    return {Fault::unsupported};
  return status == 0 ? Failure() : Failure{Fault::status, static_cast<int>(status)};
}

class Asking {
 public:
  Asking(const NfsProbeRequest& request, const Address& address, const NfsPorts& ports, int fd)
      : m_request(request), m_address(address), m_ports(ports), m_fd(fd), m_deadline(deadline_in(request.timeout)),
        m_caller(own_caller()) {}

  /// NFS itself first, because a firewall in front of the portmapper must not use up the time for it.
  void run() {
    // A port below 1024 can be had only before privileges are dropped.
    if (m_caller.uid == 0) {
      m_reserved_for_nfs = reserve_socket(m_address.storage.ss_family);
      m_reserved_for_mountd = reserve_socket(m_address.storage.ss_family);
    }
    const int dropped = drop_privileges();
    if (const int error = dropped != 0 ? dropped : restrict_to_network(); error != 0)
      return finish(ProbeStage::connect, Clock::now(), {Fault::not_asked, error});
    if (!ask_nfs3())
      return;
    ask_nfs4();
    ask_portmapper();
    if (m_answers.mountd_port != 0)
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

  bool ask_nfs3() {
    auto begin = Clock::now();
    auto connected = connect_to(m_address, m_ports.nfs, m_deadline);
    finish(ProbeStage::connect, begin, connected ? Failure() : Failure{Fault::connection, connected.error()});
    if (!connected)
      return false;
    begin = Clock::now();
    RpcClient nfs3(std::move(*connected), m_caller);
    finish(ProbeStage::nfs3, begin, nfs3.null(k_program_nfs, 3, part_of_time(40)));
    return true;
  }

  /// By a connection of its own: after a time-out the old one is of no use. Version 4 is asked for its root: unlike
  /// NULL, which the kernel answers by itself, this takes a living mountd.
  void ask_nfs4() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(40);
    auto connected = connect_to(m_address, m_ports.nfs, until, std::move(m_reserved_for_nfs));
    if (!connected)
      return finish(ProbeStage::nfs4, begin, {Fault::closed});
    RpcClient nfs4(std::move(*connected), m_caller);
    const auto root = nfs4.look_up({}, until);
    if (!root && root.error().fault == Fault::refused) {
      // Who wants Kerberos says so to all but NULL, and so does a server that exports nothing to this address.
      m_answers.access.assign(m_request.want_access ? m_request.paths.size() : 0, root.error());
      return finish(ProbeStage::nfs4, begin, nfs4.null(k_program_nfs, 4, until));
    }
    finish(ProbeStage::nfs4, begin, root ? Failure() : root.error());
    if (root && m_request.want_access)
      look_up_paths(nfs4, until);
  }

  /// What mount.nfs looks up, for a server of version 4 alone: it has no mountd that could be asked.
  void look_up_paths(RpcClient& nfs4, Deadline until) {
    for (const std::string& path : m_request.paths) {
      auto names = split(normalize_path(path), '/');
      std::erase(names, "");
      const auto status = nfs4.look_up(names, until);
      m_answers.access.push_back(status ? failure_of_look_up(*status) : status.error());
      if (!status)
        break;
    }
  }

  void ask_portmapper() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(50);
    auto connected = connect_to(m_address, m_ports.portmapper, until);
    if (!connected)
      return finish(ProbeStage::portmapper, begin, {Fault::connection, connected.error()});
    RpcClient portmapper(std::move(*connected), m_caller);
    const bool is_ipv6 = m_address.storage.ss_family == AF_INET6;
    auto port = portmapper.mountd_port(is_ipv6, until);
    if (!port && is_ipv6 && port.error().fault == Fault::unsupported)
      port = portmapper.mountd_port(false, until);
    if (!port)
      return finish(ProbeStage::portmapper, begin, port.error());
    m_answers.mountd_port = *port;
    finish(ProbeStage::portmapper, begin);
    if (*port == 0)
      finish(ProbeStage::mountd, Clock::now(), {Fault::unregistered});
  }

  void ask_mountd() {
    auto begin = Clock::now();
    const Deadline until = part_of_time(70);
    auto connected = connect_to(m_address, m_answers.mountd_port, until, std::move(m_reserved_for_mountd));
    if (!connected)
      return finish(ProbeStage::mountd, begin, {Fault::connection, connected.error()});
    RpcClient mountd(std::move(*connected), m_caller);
    const Failure failed = mountd.null(k_program_mount, 3, until);
    finish(ProbeStage::mountd, begin, failed);
    if (failed.fault != Fault::none)
      return;
    begin = Clock::now();
    auto exports = mountd.exports(until);
    if (!exports)
      return finish(ProbeStage::exports, begin, exports.error());
    m_answers.exports = std::move(*exports);
    m_answers.access.clear(); // from here on mountd's answers count
    finish(ProbeStage::exports, begin, {m_answers.exports.empty() ? Fault::nothing : Fault::none});
    if (m_request.want_access)
      ask_access(mountd);
  }

  void ask_access(RpcClient& mountd) {
    const auto begin = Clock::now();
    for (const std::string& path : access_paths(m_request, m_answers.exports)) {
      const Failure failed = m_answers.access.emplace_back(mountd.mount(path, m_deadline));
      const bool answered =
          failed.fault == Fault::none || failed.fault == Fault::status || failed.fault == Fault::only_kerberos;
      if (!answered)
        break;
    }
    if (!m_answers.access.empty())
      finish(ProbeStage::access, begin);
  }

  const NfsProbeRequest& m_request;
  const Address& m_address;
  NfsPorts m_ports;
  int m_fd;
  Deadline m_deadline;
  Caller m_caller; ///< the user who would mount, not nobody
  Fd m_reserved_for_nfs, m_reserved_for_mountd;
  AddressAnswers m_answers;
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

void ask_address(const NfsProbeRequest& request, const Address& address, const NfsPorts& ports, int fd) {
  Asking(request, address, ports, fd).run();
}

} // namespace sharefs::sys

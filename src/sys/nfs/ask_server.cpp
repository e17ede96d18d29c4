#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/net/connect.hpp"
#include "sys/nfs/rpc_client.hpp"
#include "sys/process/sandbox.hpp"

#include <algorithm>
#include <cerrno>
#include <netdb.h>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_patience{250}; ///< for further addresses, once one has accepted
constexpr std::size_t k_reserved = 4;                ///< of each family: mountd's and version 4's of two addresses

Failure no_connection(int error_number) {
  return {Fault::connection, error_number};
}

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
  Asking(const NfsProbeRequest& request, const NfsPorts& ports, int fd)
      : m_request(request), m_ports(ports), m_fd(fd), m_deadline(deadline_in(request.timeout)), m_caller(own_caller()) {
  }

  void run() {
    // A port below 1024 can be had only before privileges are dropped, and each connection uses one up.
    if (m_caller.uid == 0)
      for (std::size_t i = 0; i < k_reserved; ++i) {
        m_reserved_v4.push_back(reserve_socket(AF_INET));
        m_reserved_v6.push_back(reserve_socket(AF_INET6));
      }
    if (!is_walled(drop_privileges()) || !resolve() || !is_walled(restrict_to_network()))
      return;
    auto begin = Clock::now();
    auto connections = connect_to_each(m_addresses, m_ports.nfs, m_deadline, k_patience);
    auto accepted = std::ranges::count_if(connections, [](const auto& one) { return one.has_value(); });
    for (std::size_t i = 0; i < connections.size(); ++i)
      finish(i, ProbeStage::connect, begin, connections[i] ? Failure() : no_connection(connections[i].error()));
    if (accepted == 0 && !connections.empty() && connections[0].error() == ECONNREFUSED)
      ask_portmapper();
    // One address after the other, until one lets this host in.
    const Deadline end = m_deadline;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (!connections[i])
        continue;
      const auto now = Clock::now();
      m_deadline = now + std::max(end - now, Clock::duration(0)) / accepted--;
      m_answers.asking = static_cast<std::uint32_t>(i);
      m_nfs = std::move(*connections[i]);
      ask_address();
      if (usefulness(m_request, answers()) == k_all_allowed)
        break;
    }
  }

 private:
  [[nodiscard]] AddressAnswers& answers() { return m_answers.addresses[m_answers.asking]; }
  [[nodiscard]] const Address& address() const { return m_addresses[m_answers.asking]; }
  [[nodiscard]] bool is_ipv6() const { return address().storage.ss_family == AF_INET6; }

  /// A part of the time that is left, so that one silent stage leaves some for the others.
  [[nodiscard]] Deadline part_of_time(int percent) const {
    const auto now = Clock::now();
    return m_deadline <= now ? m_deadline : now + (m_deadline - now) * percent / 100;
  }

  static StageAnswer stage_answer(Deadline begin, const Failure& failure) {
    return {true, failure, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)};
  }
  void finish(std::size_t index, ProbeStage stage, Deadline begin, const Failure& failure) {
    m_answers.addresses[index][stage] = stage_answer(begin, failure);
    write_all(m_fd, encode(m_answers));
  }
  void finish(ProbeStage stage, Deadline begin, const Failure& failure = {}) {
    finish(m_answers.asking, stage, begin, failure);
  }
  void finish_resolve(Deadline begin, const Failure& failure) {
    m_answers.resolve = stage_answer(begin, failure);
    write_all(m_fd, encode(m_answers));
  }

  bool is_walled(int error) {
    if (error != 0)
      finish_resolve(Clock::now(), {Fault::not_asked, error});
    return error == 0;
  }

  bool resolve() {
    const auto begin = Clock::now();
    auto addresses = resolve_host(m_request.host);
    if (!addresses) {
      const int error = addresses.error();
      finish_resolve(begin, error == EAI_NONAME ? Failure{Fault::no_such_name} : Failure{Fault::name_service, error});
      return false;
    }
    m_addresses = std::move(*addresses);
    for (const Address& one : m_addresses)
      m_answers.addresses.emplace_back().address = one.text;
    finish_resolve(begin, {});
    return true;
  }

  /// All that is asked of one address. A connection for each version: after a time-out the old one is of no use.
  void ask_address() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(40);
    RpcClient nfs3(std::move(m_nfs), m_caller);
    finish(ProbeStage::nfs3, begin, nfs3.null(k_program_nfs, 3, until));
    ask_nfs4();
    ask_portmapper();
    if (answers().mountd_port != 0)
      ask_mountd();
  }

  /// Version 4 is asked for its root: unlike NULL, which the kernel answers by itself, this takes a living mountd.
  void ask_nfs4() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(40);
    auto connected = connect_to(address(), m_ports.nfs, until, take_reserved());
    if (!connected)
      return finish(ProbeStage::nfs4, begin, {Fault::closed});
    RpcClient nfs4(std::move(*connected), m_caller);
    const auto root = nfs4.look_up({}, until);
    const bool compares = m_addresses.size() > 1 && m_request.want_access;
    if (!root && root.error().fault == Fault::refused) {
      // Who wants Kerberos says so to all but NULL, and so does a server that exports nothing to this address.
      if (compares)
        answers().access.assign(m_request.paths.size(), root.error());
      return finish(ProbeStage::nfs4, begin, nfs4.null(k_program_nfs, 4, until));
    }
    finish(ProbeStage::nfs4, begin, root ? Failure() : root.error());
    if (root && compares)
      look_up_paths(nfs4, until);
  }

  /// What mount.nfs looks up, where there is another address to take instead: a server of version 4 alone has no mountd
  /// that could be asked.
  void look_up_paths(RpcClient& nfs4, Deadline until) {
    for (const std::string& path : m_request.paths) {
      auto names = split(normalize_path(path), '/');
      std::erase(names, "");
      const auto status = nfs4.look_up(names, until);
      answers().access.push_back(status ? failure_of_look_up(*status) : status.error());
      if (!status)
        break;
    }
  }

  Fd take_reserved() {
    auto& sockets = is_ipv6() ? m_reserved_v6 : m_reserved_v4;
    if (sockets.empty())
      return {};
    Fd socket = std::move(sockets.back());
    sockets.pop_back();
    return socket;
  }

  void ask_portmapper() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(50);
    auto connected = connect_to(address(), m_ports.portmapper, until);
    if (!connected)
      return finish(ProbeStage::portmapper, begin, no_connection(connected.error()));
    RpcClient portmapper(std::move(*connected), m_caller);
    auto registered = portmapper.registered(is_ipv6(), until);
    if (!registered && is_ipv6() && registered.error().fault == Fault::unsupported)
      registered = portmapper.registered(false, until);
    if (!registered)
      return finish(ProbeStage::portmapper, begin, registered.error());
    answers().services = registered->services;
    answers().mountd_port = registered->mountd_port;
    answers().nfs_port = registered->nfs_port;
    finish(ProbeStage::portmapper, begin);
    if (answers().mountd_port == 0)
      finish(ProbeStage::mountd, Clock::now(), {Fault::unregistered});
  }

  void ask_mountd() {
    auto begin = Clock::now();
    const Deadline until = part_of_time(70);
    auto connected = connect_to(address(), answers().mountd_port, until, take_reserved());
    if (!connected)
      return finish(ProbeStage::mountd, begin, no_connection(connected.error()));
    RpcClient mountd(std::move(*connected), m_caller);
    const Failure failed = mountd.null(k_program_mount, 3, until);
    finish(ProbeStage::mountd, begin, failed);
    if (failed.fault != Fault::none)
      return;
    begin = Clock::now();
    auto exports = mountd.exports(until);
    if (!exports)
      return finish(ProbeStage::exports, begin, exports.error());
    answers().exports = std::move(*exports);
    finish(ProbeStage::exports, begin, {answers().exports.empty() ? Fault::nothing : Fault::none});
    if (m_request.want_access)
      ask_access(mountd);
  }

  void ask_access(RpcClient& mountd) {
    const auto begin = Clock::now();
    answers().access.clear();
    for (const std::string& path : access_paths(m_request, answers().exports)) {
      const Failure failed = answers().access.emplace_back(mountd.mount(path, m_deadline));
      const bool answered =
          failed.fault == Fault::none || failed.fault == Fault::status || failed.fault == Fault::only_kerberos;
      if (!answered)
        break;
    }
    if (!answers().access.empty())
      finish(ProbeStage::access, begin);
  }

  const NfsProbeRequest& m_request;
  NfsPorts m_ports;
  int m_fd;
  Deadline m_deadline;
  Caller m_caller; ///< the user who would mount, not nobody
  std::vector<Fd> m_reserved_v4, m_reserved_v6;
  std::vector<Address> m_addresses;
  ServerAnswers m_answers;
  Fd m_nfs; ///< to the address that is asked next
};

} // namespace

void ask_server(const NfsProbeRequest& request, const NfsPorts& ports, int fd) {
  Asking(request, ports, fd).run();
}

} // namespace sharefs::sys

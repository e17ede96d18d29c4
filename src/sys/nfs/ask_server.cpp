#include "sys/nfs/ask_server.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/net.hpp"
#include "sys/process/sandbox.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <netinet/in.h>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_patience{250}; ///< for further addresses, once one has accepted
constexpr std::size_t k_lets_in = std::numeric_limits<std::size_t>::max();
constexpr RpcProcedure k_compound{k_program_nfs, 4, 1};
constexpr std::uint32_t k_put_root_handle = 24, k_lookup = 15; // RFC 7530

class Asking {
 public:
  Asking(const NfsProbeRequest& request, const NfsPorts& ports, int fd)
      : m_request(request), m_ports(ports), m_fd(fd), m_deadline(deadline_in(request.timeout)) {}

  void run() {
    if (::geteuid() == 0)
      for (ReservedSockets* sockets : {&m_for_mountd[0], &m_for_mountd[1], &m_for_nfs4[0], &m_for_nfs4[1]})
        *sockets = reserve_sockets();
    m_credential = own_credential(); // of the user who would mount, not of nobody
    if (!walled(drop_privileges()) || !resolve() || !walled(restrict_to_network()))
      return;
    const auto all = m_addresses;
    const auto begin = Clock::now();
    auto connections = connect_to_each(all, m_ports.nfs, m_deadline, k_patience);
    const auto accepted = std::ranges::count_if(connections, [](const auto& one) { return one.has_value(); });
    for (std::size_t index = 0; index < all.size() && all.size() > 1; ++index)
      if (!connections[index])
        m_answers.tried.push_back({static_cast<std::uint32_t>(index), connections[index].error(), {}});
    if (accepted == 0) {
      const Failure failed = all.empty() ? Failure{Fault::connection, EHOSTUNREACH} : connections[0].error();
      finish(ProbeStage::connect, begin, failed);
      if (failed.error_number == ECONNREFUSED)
        ask_portmapper();
      return;
    }
    choose(all, std::move(connections), begin, accepted);
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

  /// Asks the addresses that have accepted, one after the other, until one lets this host in; else the best of them
  /// is what is reported.
  void choose(const std::vector<Address>& all, std::vector<Answer<Fd>> connections, Deadline begin,
              std::ptrdiff_t accepted) {
    const Deadline end = m_deadline;
    m_compares = all.size() > 1;
    const ServerAnswers nothing = m_answers;
    std::optional<ServerAnswers> best;
    std::size_t best_score = 0;
    for (std::size_t index = 0; index < all.size(); ++index) {
      if (!connections[index])
        continue;
      const auto now = Clock::now();
      m_deadline = now + std::max(end - now, Clock::duration(0)) / accepted--;
      auto tried = std::move(m_answers.tried);
      m_answers = nothing;
      m_answers.tried = std::move(tried);
      m_answers.used = static_cast<std::uint32_t>(index);
      m_addresses = {all[index]};
      m_nfs = std::move(*connections[index]);
      m_lookups.clear();
      finish(ProbeStage::connect, begin);
      const std::size_t score = ask_address();
      if (m_compares)
        m_answers.tried.push_back(what_it_answered());
      if (!best || score > best_score) {
        best = m_answers;
        best_score = score;
      }
      if (score == k_lets_in || accepted == 0)
        break;
    }
    best->tried = m_answers.tried;
    m_answers = std::move(*best);
    if (m_compares)
      write_all(m_fd, encode(m_answers));
  }

  /// All that is asked of one address. How well this host could use it: not at all, NFS answers, how many of the
  /// exports it may mount, or k_lets_in: all.
  std::size_t ask_address() {
    ask_nfs(ProbeStage::nfs3, {k_program_nfs, 3, 0}, {}, {});
    ask_nfs4();
    ask_portmapper();
    if (m_answers.mountd_port != 0)
      ask_mountd();
    const bool usable = is_ok(ProbeStage::nfs3) || is_ok(ProbeStage::nfs4);
    if (!usable || !m_request.want_access)
      return usable ? k_lets_in : 0;
    const auto& access = m_answers[ProbeStage::access].asked ? m_answers.access : m_lookups;
    const auto allowed = std::ranges::count_if(
        access, [](const AccessAnswer& one) { return one.failure.fault == Fault::none && one.reply.status == 0; });
    const std::size_t wanted = access_paths(m_request, m_answers.exports).size();
    return wanted > 0 && static_cast<std::size_t>(allowed) == wanted ? k_lets_in
                                                                     : 1 + static_cast<std::size_t>(allowed);
  }

  [[nodiscard]] bool is_ok(ProbeStage stage) const {
    return m_answers[stage].asked && m_answers[stage].failure.fault == Fault::none;
  }

  [[nodiscard]] AddressAnswer what_it_answered() const {
    AddressAnswer answer{m_answers.used, {}, m_answers[ProbeStage::access].asked ? m_answers.access : m_lookups};
    if (!is_ok(ProbeStage::nfs3) && !is_ok(ProbeStage::nfs4))
      answer.failure = m_answers[ProbeStage::nfs4].failure;
    return answer;
  }

  /// A connection for each version: after a time-out the old one is of no use.
  Failure ask_nfs(ProbeStage stage, const RpcProcedure& procedure, std::string_view arguments, ReservedSockets reserved,
                  const std::function<void(RpcConnection&, Deadline)>& go_on = nullptr) {
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
    RpcConnection rpc(std::move(m_nfs), m_credential);
    if (answer)
      answer = rpc.call(procedure, arguments, until);
    const Failure failed = answer ? Failure() : answer.error();
    finish(stage, begin, failed);
    if (answer && go_on)
      go_on(rpc, until);
    return failed;
  }

  /// Version 4 is asked for its root: unlike NULL, which the kernel answers by itself, this takes a living mountd.
  void ask_nfs4() {
    const std::string compound = XdrWriter().text("").word(0).word(1).word(k_put_root_handle).bytes();
    const auto look_up = [this](RpcConnection& rpc, Deadline until) { look_up_paths(rpc, until); };
    const Failure failed = ask_nfs(ProbeStage::nfs4, k_compound, compound, take_reserved(m_for_nfs4), look_up);
    if (failed.fault != Fault::refused)
      return;
    // Who wants Kerberos says so to all but NULL, and so does a server that exports nothing to this address.
    if (m_compares && m_request.want_access)
      m_lookups.assign(m_request.paths.size(), {failed, {}});
    ask_nfs(ProbeStage::nfs4, {k_program_nfs, 4, 0}, {}, {});
  }

  /// What mount.nfs looks up, where there is another address to take instead: a server of version 4 alone has no mountd
  /// that could be asked.
  void look_up_paths(RpcConnection& rpc, Deadline until) {
    if (!m_compares || !m_request.want_access)
      return;
    for (const std::string& path : m_request.paths) {
      auto names = split(normalize_path(path), '/');
      std::erase(names, "");
      XdrWriter compound;
      compound.text("").word(0).word(static_cast<std::uint32_t>(1 + names.size())).word(k_put_root_handle);
      for (const std::string& name : names)
        compound.word(k_lookup).text(name);
      const auto reply = rpc.call(k_compound, compound.bytes(), until).and_then(read_compound_status);
      m_lookups.push_back(reply ? AccessAnswer{{}, *reply} : AccessAnswer{reply.error(), {}});
      if (!reply)
        break;
    }
  }

  /// One for the address that is asked: a port below 1024 can be had only before privileges are dropped, and each
  /// connection uses one up.
  ReservedSockets take_reserved(std::array<ReservedSockets, 2>& from) {
    ReservedSockets one;
    for (auto& sockets : from) {
      const bool v6 = m_addresses.front().storage.ss_family == AF_INET6;
      Fd& there = v6 ? sockets.v6 : sockets.v4;
      Fd& into = v6 ? one.v6 : one.v4;
      if (!into)
        into = std::move(there);
    }
    return one;
  }

  void ask_portmapper() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(50);
    auto connection = connect_tcp(m_addresses, m_ports.portmapper, until);
    if (!connection)
      return finish(ProbeStage::portmapper, begin, connection.error());
    RpcConnection rpc(std::move(connection->fd), m_credential);
    const bool v6 = m_addresses[connection->index].storage.ss_family == AF_INET6;
    auto mappings = v6 ? rpc.call(k_rpcbind_dump, {}, until).and_then(read_mappings_of_ipv6)
                       : rpc.call(k_portmapper_dump, {}, until).and_then(read_mappings);
    if (!mappings && mappings.error().fault == Fault::unsupported)
      mappings = rpc.call(k_portmapper_dump, {}, until).and_then(read_mappings);
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
    auto connection = connect_tcp(m_addresses, m_answers.mountd_port, until, take_reserved(m_for_mountd));
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
  std::array<ReservedSockets, 2> m_for_mountd, m_for_nfs4; ///< two, as one family may have two addresses
  bool m_compares = false;                                 ///< there are several addresses
  std::vector<AccessAnswer> m_lookups;                     ///< by NFS 4, as m_answers.access
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

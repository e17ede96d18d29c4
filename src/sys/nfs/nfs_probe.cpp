#include "sys/nfs/nfs_probe.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/net.hpp"
#include "sys/nfs/nfs_causes.hpp"
#include "sys/nfs/rpc.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>

namespace sharefs::sys {
namespace {

constexpr std::array<ProbeStage, 8> k_stages{ProbeStage::resolve, ProbeStage::connect, ProbeStage::portmapper,
                                             ProbeStage::mountd,  ProbeStage::nfs3,    ProbeStage::nfs4,
                                             ProbeStage::exports, ProbeStage::access};

constexpr int k_auth_none = 0, k_auth_sys = 1;

std::chrono::microseconds since(Deadline begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

/// What the export list says about a path.
enum class Listing { unlisted, below, exactly };

std::string refusal(const RpcMountReply& reply, Listing listing, bool is_root) {
  constexpr unsigned no_entry = 2, access_denied = 13, not_a_directory = 20;
  // An unlisted path, a wrong one and a denied client often get the same answer: the list tells them apart.
  if (listing == Listing::unlisted && (reply.status == no_entry || reply.status == access_denied))
    return "no such export";
  switch (reply.status) {
  case no_entry:
    return listing == Listing::exactly ? "exported, but the server has no such directory" : "no such directory";
  case access_denied:
    return is_root ? "access denied by server" : "access denied by server (a `secure` export answers only to root)";
  case not_a_directory:
    return "not a directory";
  default:
    return "mountd says error " + std::to_string(reply.status);
  }
}

bool only_kerberos(const std::vector<int>& flavors) {
  const auto plain = [](int flavor) { return flavor == k_auth_sys || flavor == k_auth_none; };
  return !flavors.empty() && std::none_of(flavors.begin(), flavors.end(), plain);
}

/// The stages one after the other. The order of asking differs from the order of telling: NFS itself first, because a
/// firewall in front of the portmapper must not use up the time for it.
class Probe {
 public:
  Probe(const NfsProbeRequest& request, const NfsPorts& ports)
      : m_request(request), m_ports(ports), m_begin(Clock::now()), m_deadline(deadline_in(request.timeout)) {
    m_result.host = request.host;
    for (const ProbeStage stage : k_stages)
      m_result.stages.push_back({stage, StageOutcome::skipped, {}, {}, {}, {}});
  }

  NfsProbe run() {
    if (resolve() && connect()) {
      ask_nfs(ProbeStage::nfs3, 3);
      ask_nfs(ProbeStage::nfs4, 4);
    }
    if (connected() || refused())
      ask_portmapper();
    if (connected()) {
      if (m_mount_port != 0)
        ask_mountd();
      if (m_mount_connection && m_request.want_access)
        ask_access();
      if (!m_mount_connection)
        skip_access();
    }
    settle();
    m_result.took = std::chrono::duration_cast<std::chrono::milliseconds>(since(m_begin));
    return std::move(m_result);
  }

 private:
  StageResult& stage(ProbeStage which) { return m_result.stages[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool connected() { return stage(ProbeStage::connect).outcome == StageOutcome::ok; }
  [[nodiscard]] bool refused() { return m_connect_error == ECONNREFUSED; }

  void succeed(ProbeStage which, Deadline begin, std::string detail) {
    stage(which) = {which, StageOutcome::ok, since(begin), std::move(detail), {}, {}};
  }
  /// "no answer" gets the time that was waited.
  void failed(StageResult result, Deadline begin) {
    result.round_trip = since(begin);
    if (result.detail.ends_with("no answer"))
      result.detail += " within " + format_duration(result.round_trip.count());
    stage(result.stage) = std::move(result);
  }
  /// A part of the time that is left, so that one silent stage leaves some for the others.
  [[nodiscard]] Deadline part_of_time(int percent) const {
    const auto now = Clock::now();
    return m_deadline <= now ? m_deadline : now + (m_deadline - now) * percent / 100;
  }

  bool resolve() {
    const auto begin = Clock::now();
    auto addresses = resolve_host(m_request.host, m_deadline);
    if (!addresses) {
      failed(call_failure(ProbeStage::resolve, addresses.error()), begin);
      return false;
    }
    m_addresses = std::move(*addresses);
    m_result.address = m_addresses[0].text;
    std::vector<std::string> texts;
    for (const Address& address : m_addresses)
      texts.push_back(address.text);
    succeed(ProbeStage::resolve, begin, join(texts, ", "));
    return true;
  }

  bool connect() {
    const auto begin = Clock::now();
    Connection connection = connect_tcp(m_addresses, m_ports.nfs, m_deadline);
    m_connect_error = connection.error_number;
    if (!connection.fd) {
      failed(connection_failure(ProbeStage::connect, connection.error_number, m_ports.nfs), begin);
      return false;
    }
    m_addresses = {m_addresses[connection.index]};
    m_result.address = m_addresses[0].text;
    succeed(ProbeStage::connect, begin, m_result.address + " port " + std::to_string(m_ports.nfs));
    m_nfs_fd = std::move(connection.fd);
    return true;
  }

  /// A connection for each version: after a time-out the old one is of no use.
  void ask_nfs(ProbeStage which, unsigned version) {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(40);
    if (!m_nfs_fd)
      m_nfs_fd = connect_tcp(m_addresses, m_ports.nfs, until).fd;
    if (!m_nfs_fd)
      return failed(call_failure(which, {ErrorCode::failed, "the connection was lost", {}, {}}), begin);
    RpcConnection rpc(std::move(m_nfs_fd));
    if (const auto answer = rpc.null_call(k_program_nfs, version, until); !answer)
      return failed(call_failure(which, answer.error()), begin);
    (version == 3 ? m_result.v3 : m_result.v4) = true;
    succeed(which, begin, "version " + std::to_string(version));
  }

  void ask_portmapper() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(50);
    Connection connection = connect_tcp(m_addresses, m_ports.portmapper, until);
    if (!connection.fd)
      return failed(connection_failure(ProbeStage::portmapper, connection.error_number, m_ports.portmapper), begin);
    const auto mappings = RpcConnection(std::move(connection.fd)).portmapper_dump(until);
    if (!mappings)
      return failed(call_failure(ProbeStage::portmapper, mappings.error()), begin);
    succeed(ProbeStage::portmapper, begin, count_of(mappings->size(), "registered service"));
    std::vector<std::string> versions;
    unsigned nfs_port = 0;
    for (const RpcMapping& mapping : *mappings) {
      if (mapping.protocol != IPPROTO_TCP)
        continue;
      if (mapping.program == k_program_mount && mapping.version == 3)
        m_mount_port = static_cast<std::uint16_t>(mapping.port);
      if (mapping.program == k_program_nfs)
        nfs_port = mapping.port;
    }
    if (!connected())
      explain_refusal(nfs_port);
    if (m_mount_port != 0)
      return;
    stage(ProbeStage::mountd) = {ProbeStage::mountd,
                                 StageOutcome::failed,
                                 {},
                                 "not registered with the portmapper",
                                 "rpc.mountd is not running: without it NFS version 3 cannot be mounted",
                                 "on the server: `systemctl restart nfs-server`, or use version 4"};
  }

  /// Nobody listens on the NFS port; the portmapper may know why.
  void explain_refusal(unsigned registered_port) {
    StageResult& result = stage(ProbeStage::connect);
    if (registered_port == 0) {
      result.cause = "the host is up and runs rpcbind, but its NFS server is stopped";
    } else if (registered_port == m_ports.nfs) {
      result.cause = "the NFS server is registered but does not listen: it was killed, or is just stopping or starting";
      result.hint = "on the server: `systemctl restart nfs-server`";
    } else {
      result.cause = "the NFS server listens on port " + std::to_string(registered_port);
      result.hint = "mount with the option `port=" + std::to_string(registered_port) + "`";
    }
  }

  void ask_mountd() {
    const auto begin = Clock::now();
    const Deadline until = part_of_time(70);
    // A `secure` export answers only to reserved ports.
    Connection connection = connect_tcp(m_addresses, m_mount_port, until, ::geteuid() == 0);
    if (!connection.fd)
      return failed(connection_failure(ProbeStage::mountd, connection.error_number, m_mount_port), begin);
    RpcConnection rpc(std::move(connection.fd));
    if (const auto answer = rpc.null_call(k_program_mount, 3, until); !answer)
      return failed(call_failure(ProbeStage::mountd, answer.error()), begin);
    succeed(ProbeStage::mountd, begin, "port " + std::to_string(m_mount_port));

    const auto list_begin = Clock::now();
    auto exports = rpc.mount_export(until);
    if (!exports) {
      failed(call_failure(ProbeStage::exports, exports.error()), list_begin);
      return;
    }
    for (RpcExport& one : *exports)
      m_result.exports.push_back({std::move(one.directory), std::move(one.clients)});
    succeed(ProbeStage::exports, list_begin, count_of(exports->size(), "export"));
    if (exports->empty())
      failed({ProbeStage::exports,
              StageOutcome::failed,
              {},
              "nothing is exported",
              "the server's exports file is empty, not loaded, or has an error in its first line",
              "on the server: `sharefs export`, or `sharefs export check` and `exportfs -ra`"},
             list_begin);
    m_mount_connection.emplace(std::move(rpc));
  }

  [[nodiscard]] Listing listing_of(const std::string& path) const {
    Listing result = Listing::unlisted;
    for (const ExportListing& one : m_result.exports) {
      const std::string directory = normalize_path(one.directory);
      if (path == directory)
        return Listing::exactly;
      if (is_under(path, directory))
        result = Listing::below;
    }
    return result;
  }

  [[nodiscard]] std::vector<std::string> wanted_paths() const {
    if (!m_request.paths.empty())
      return m_request.paths;
    std::vector<std::string> paths;
    for (const ExportListing& one : m_result.exports)
      paths.push_back(one.directory);
    return paths;
  }

  void ask_access() {
    const auto begin = Clock::now();
    const bool is_root = ::geteuid() == 0;
    bool usable = true;
    std::size_t allowed = 0;
    for (const std::string& path : wanted_paths()) {
      ExportAccess access{path, false, "no answer in time"};
      if (usable) {
        const auto reply = m_mount_connection->mount_mnt(path, m_deadline);
        usable = reply.has_value();
        if (!reply)
          access.reason = reply.error().code == ErrorCode::timeout ? "no answer in time" : reply.error().message;
        else if (reply->status != 0)
          access.reason = refusal(*reply, listing_of(normalize_path(path)), is_root);
        else if (only_kerberos(reply->flavors))
          access.reason = "only Kerberos (krb5)";
        else
          access = {path, true, ""};
        // Takes us out of the server's list of mounts again.
        if (reply && reply->status == 0)
          usable = m_mount_connection->mount_umnt(path, m_deadline).has_value();
      }
      allowed += access.allowed ? 1U : 0U;
      m_result.access.push_back(std::move(access));
    }
    conclude_access(allowed, begin);
  }

  void conclude_access(std::size_t allowed, Deadline begin) {
    const std::size_t asked = m_result.access.size();
    if (asked == 0)
      return;
    const std::string detail = std::to_string(allowed) + " of " + count_of(asked, "export");
    // Exports for other clients are no fault, unless they were asked for by name.
    if (allowed == asked || (allowed > 0 && m_request.paths.empty()))
      return succeed(ProbeStage::access, begin, detail);
    const auto refusal = std::find_if(m_result.access.begin(), m_result.access.end(),
                                      [](const ExportAccess& access) { return !access.allowed; });
    failed(
        {ProbeStage::access,
         StageOutcome::failed,
         {},
         detail,
         refusal->directory + ": " + refusal->reason,
         ::geteuid() == 0
             ? "compare this host's address with the export's clients, then `sharefs export` on the server"
             : "mounting is done by root, who asks from a port below 1024: ask as root to see what a mount would get"},
        begin);
  }

  void skip_access() {
    if (!m_request.want_access || !m_result.v4)
      return;
    for (const std::string& path : m_request.paths)
      m_result.access.push_back({path, false, "v4 only: not tested"});
  }

  /// What only NFS version 3 needs is no failure of a server that offers version 4 alone, and the other way round.
  void settle() {
    const auto excuse = [this](ProbeStage which, const char* detail) {
      StageResult& result = stage(which);
      if (result.outcome != StageOutcome::failed)
        return;
      result.outcome = StageOutcome::absent;
      result.detail += result.detail.empty() ? detail : std::string(" (") + detail + ")";
      result.cause.clear();
      result.hint.clear();
    };
    if (m_result.v4 && !m_result.v3)
      for (const ProbeStage which : {ProbeStage::portmapper, ProbeStage::mountd, ProbeStage::nfs3})
        excuse(which, "not needed for version 4");
    if (m_result.v3 && !m_result.v4)
      excuse(ProbeStage::nfs4, "the server offers version 3 only");
    // Registered or not, mountd cannot be asked without a portmapper.
    StageResult& mountd = stage(ProbeStage::mountd);
    if (mountd.outcome == StageOutcome::skipped && stage(ProbeStage::portmapper).outcome == StageOutcome::absent)
      mountd = {ProbeStage::mountd, StageOutcome::absent, {}, "not needed for version 4", {}, {}};
  }

  const NfsProbeRequest& m_request;
  NfsPorts m_ports;
  Deadline m_begin, m_deadline;
  NfsProbe m_result;
  std::vector<Address> m_addresses;
  int m_connect_error = 0;
  Fd m_nfs_fd;
  std::uint16_t m_mount_port = 0;
  std::optional<RpcConnection> m_mount_connection;
};

} // namespace

const StageResult* NfsProbe::failing(int version) const {
  const auto first = [this](std::initializer_list<ProbeStage> needed, bool only_failed) -> const StageResult* {
    for (const StageResult& one : stages) {
      const bool is_needed = std::find(needed.begin(), needed.end(), one.stage) != needed.end();
      const bool is_bad = only_failed ? one.outcome == StageOutcome::failed : one.outcome != StageOutcome::ok;
      if (is_needed && is_bad)
        return &one;
    }
    return nullptr;
  };
  using enum ProbeStage;
  const StageResult* for_v3 = first({resolve, connect, portmapper, mountd, nfs3}, false);
  const StageResult* for_v4 = first({resolve, connect, nfs4}, false);
  if (version == 3)
    return for_v3;
  if (version == 4)
    return for_v4;
  if (for_v3 == nullptr || for_v4 == nullptr)
    return nullptr;
  const StageResult* failed = first({resolve, connect, portmapper, mountd, nfs3, nfs4}, true);
  return failed != nullptr ? failed : for_v3;
}

NfsProbe probe_nfs_server(const NfsProbeRequest& request, const NfsPorts& ports) {
  return Probe(request, ports).run();
}

} // namespace sharefs::sys

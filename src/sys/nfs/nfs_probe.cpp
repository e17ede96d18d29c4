#include "sys/nfs/nfs_probe.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/ask_server.hpp"
#include "sys/nfs/nfs_causes.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_retry_interval{20};
constexpr const char* k_only_kerberos = "only Kerberos (krb5)";

/// What the export list says about a path.
enum class Listing { unlisted, below, exactly };

Listing listing_of(const std::string& path, const std::vector<ExportListing>& exports) {
  Listing result = Listing::unlisted;
  for (const ExportListing& one : exports) {
    const std::string directory = normalize_path(one.directory);
    if (path == directory)
      return Listing::exactly;
    if (is_under(path, directory))
      result = Listing::below;
  }
  return result;
}

std::string refusal(std::uint32_t status, Listing listing, bool is_root) {
  constexpr std::uint32_t no_entry = 2, access_denied = 13, not_a_directory = 20;
  // An unlisted path, a wrong one and a denied client often get the same answer: the list tells them apart.
  if (listing == Listing::unlisted && (status == no_entry || status == access_denied))
    return "no such export";
  switch (status) {
  case no_entry:
    return listing == Listing::exactly ? "exported, but the server has no such directory" : "no such directory";
  case access_denied:
    return is_root ? "access denied by server" : "access denied by server (a `secure` export answers only to root)";
  case not_a_directory:
    return "not a directory";
  default:
    return "mountd reports error " + std::to_string(status);
  }
}

/// Turns what the child reports into what people read; asks nothing.
class Conclusion {
 public:
  Conclusion(const NfsProbeRequest& request, const NfsPorts& ports, ServerAnswers answers)
      : m_request(request), m_ports(ports), m_answers(std::move(answers)) {}

  NfsProbe draw() {
    m_result.host = m_request.host;
    if (!m_answers.addresses.empty())
      m_result.address = m_answers.addresses[m_answers.used];
    for (std::size_t i = 0; i < k_stage_count; ++i)
      m_result.stages.push_back(conclude(static_cast<ProbeStage>(i)));
    m_result.exports = std::move(m_answers.exports);
    m_result.v3 = is_ok(ProbeStage::nfs3);
    m_result.v4 = is_ok(ProbeStage::nfs4);
    m_result.v3_unknown = is_unknown(ProbeStage::nfs3);
    m_result.v4_unknown = is_unknown(ProbeStage::nfs4);
    explain_refusal();
    name_addresses();
    conclude_access();
    settle();
    return std::move(m_result);
  }

 private:
  StageResult& stage(ProbeStage which) { return m_result.stages[static_cast<std::size_t>(which)]; }
  bool is_ok(ProbeStage which) { return stage(which).outcome == StageOutcome::ok; }
  bool is_unknown(ProbeStage which) { return !is_ok(which) && m_answers[which].failure.fault != Fault::unsupported; }

  [[nodiscard]] std::uint16_t port_of(ProbeStage which) const {
    if (which == ProbeStage::portmapper)
      return m_ports.portmapper;
    return which == ProbeStage::mountd ? m_answers.mountd_port : m_ports.nfs;
  }

  [[nodiscard]] StageResult conclude(ProbeStage which) const {
    const StageAnswer& answer = m_answers[which];
    if (!answer.asked)
      return {which, StageOutcome::skipped, {}, {}, {}, {}};
    if (answer.failure.fault != Fault::none)
      return failed_stage(which, answer, port_of(which));
    return {which, StageOutcome::ok, answer.round_trip, detail_of(which), {}, {}};
  }

  [[nodiscard]] std::string detail_of(ProbeStage which) const {
    switch (which) {
    case ProbeStage::resolve:
      return join(m_answers.addresses, ", ");
    case ProbeStage::connect:
      return m_result.address + " port " + std::to_string(m_ports.nfs);
    case ProbeStage::portmapper:
      return count_of(m_answers.services, "registered service");
    case ProbeStage::mountd:
      return "port " + std::to_string(m_answers.mountd_port);
    case ProbeStage::nfs3:
      return "version 3";
    case ProbeStage::nfs4:
      return "version 4";
    case ProbeStage::exports:
      return count_of(m_answers.exports.size(), "export");
    case ProbeStage::access:
      break; // conclude_access() counts
    }
    return "";
  }

  /// Nobody listens on the NFS port; the portmapper may know why.
  void explain_refusal() {
    if (m_answers[ProbeStage::connect].failure != Failure{Fault::connection, ECONNREFUSED} ||
        !is_ok(ProbeStage::portmapper))
      return;
    StageResult& result = stage(ProbeStage::connect);
    if (m_answers.nfs_port == 0) {
      result.cause = "the host is up and runs rpcbind, but its NFS server is stopped";
    } else if (m_answers.nfs_port == m_ports.nfs) {
      result.cause = "the NFS server is registered but does not listen: it was killed, or is just stopping or starting";
      result.hint = "on the server: `systemctl restart nfs-server`";
    } else {
      result.cause = "the NFS server listens on port " + std::to_string(m_answers.nfs_port);
      result.hint = "mount with the option `port=" + std::to_string(m_answers.nfs_port) + "`";
    }
  }

  [[nodiscard]] const std::string& used_address() const {
    static const std::string k_none;
    return m_answers.addresses.empty() ? k_none : m_answers.addresses[m_answers.used];
  }

  /// "fd00::1: no answer, 10.0.0.1: Connection refused"
  [[nodiscard]] std::string addresses_without_answer() const {
    std::vector<std::string> words;
    for (const AddressAnswer& one : m_answers.tried)
      if (one.failure.fault != Fault::none)
        words.push_back(m_answers.addresses[one.address] + ": " + describe(one.failure));
    return join(words, ", ");
  }

  /// A server with several addresses can be dead by one of them.
  void name_addresses() {
    const std::string dead = addresses_without_answer();
    if (dead.empty())
      return;
    StageResult& result = stage(ProbeStage::connect);
    if (result.outcome == StageOutcome::ok)
      result.detail += "; " + dead;
    else
      result.detail = "TCP port " + std::to_string(m_ports.nfs) + " of " + dead;
  }

  /// What `path`, number `index` of those that were asked, got by the addresses other than the one that was used.
  void look_at_other_addresses(std::size_t index, Listing listing, bool is_root, ExportAccess& access) const {
    std::vector<std::string> refusals;
    for (const AddressAnswer& one : m_answers.tried) {
      const std::string& address = m_answers.addresses[one.address];
      if (one.failure.fault == Fault::none && index < one.access.size()) {
        const auto& [failure, reply] = one.access[index];
        const bool answered = failure.fault == Fault::none;
        if (answered && reply.status == 0 && access.address.empty()) {
          access = {access.directory, !reply.only_kerberos, reply.only_kerberos ? k_only_kerberos : "", address};
          return;
        }
        refusals.push_back(address + ": " + (answered ? refusal(reply.status, listing, is_root) : describe(failure)));
      } else {
        refusals.push_back(address + ": " + (one.failure.fault == Fault::none ? "not asked" : describe(one.failure)));
      }
    }
    if (!refusals.empty())
      access.reason += " (" + join(refusals, ", ") + ")";
  }

  /// Where no address lets this host in: a look-up does not tell a path that is missing from one that is hidden.
  [[nodiscard]] std::string reason_by_version_4(std::size_t index) const {
    std::string reason = "v4 only: not tested";
    for (const AddressAnswer& one : m_answers.tried)
      if (index < one.access.size() && one.access[index].failure.fault == Fault::none)
        return "access denied by server, or it has no such directory";
      else if (index < one.access.size())
        reason = describe(one.access[index].failure);
    return reason;
  }

  void conclude_access() {
    const bool is_root = ::geteuid() == 0;
    const auto paths = access_paths(m_request, m_result.exports);
    if (!m_answers[ProbeStage::exports].asked || !m_request.want_access) {
      if (m_request.want_access && m_result.v4)
        for (std::size_t i = 0; i < m_request.paths.size(); ++i) {
          m_result.access.push_back({m_request.paths[i], false, reason_by_version_4(i)});
          look_at_other_addresses(i, Listing::below, is_root, m_result.access.back());
        }
      return;
    }
    std::size_t allowed = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      ExportAccess access{paths[i], false, "no answer in time"};
      if (i < m_answers.access.size()) {
        const auto& [failure, reply] = m_answers.access[i];
        access.allowed = failure.fault == Fault::none && reply.status == 0 && !reply.only_kerberos;
        if (failure.fault != Fault::none)
          access.reason = failure.fault == Fault::timeout ? "no answer in time" : describe(failure);
        else if (reply.status != 0)
          access.reason = refusal(reply.status, listing_of(normalize_path(paths[i]), m_result.exports), is_root);
        else
          access.reason = reply.only_kerberos ? k_only_kerberos : "";
        if (failure.fault == Fault::none && reply.status == 0)
          access.address = used_address();
      }
      if (access.address.empty())
        look_at_other_addresses(i, listing_of(normalize_path(paths[i]), m_result.exports), is_root, access);
      allowed += access.allowed ? 1U : 0U;
      m_result.access.push_back(std::move(access));
    }
    conclude_access_stage(allowed);
  }

  void conclude_access_stage(std::size_t allowed) {
    const std::size_t asked = m_result.access.size();
    if (asked == 0)
      return;
    StageResult& result = stage(ProbeStage::access);
    result = {ProbeStage::access,
              StageOutcome::ok,
              m_answers[ProbeStage::access].round_trip,
              std::to_string(allowed) + " of " + count_of(asked, "export"),
              {},
              {}};
    // Exports for other clients are no fault, unless they were asked for by name.
    if (allowed == asked || (allowed > 0 && m_request.paths.empty()))
      return;
    const auto refused = std::find_if(m_result.access.begin(), m_result.access.end(),
                                      [](const ExportAccess& access) { return !access.allowed; });
    result.outcome = StageOutcome::failed;
    result.cause = refused->directory + ": " + refused->reason;
    result.hint =
        ::geteuid() == 0
            ? "compare this host's address with the export's clients, then `sharefs export --all` on the server"
            : "mounting is done by root, who asks from a port below 1024: ask as root to see what a mount "
              "would get";
  }

  /// What only NFS version 3 needs is no failure of a server that offers version 4 alone, and the other way round. A
  /// version that was not answered in time may well be offered, and excuses nothing.
  void settle() {
    const auto excuse = [this](ProbeStage which, const char* detail) {
      StageResult& result = stage(which);
      if (result.outcome != StageOutcome::failed)
        return;
      result.outcome = StageOutcome::absent;
      result.detail += std::string(" (") + detail + ")";
      result.cause.clear();
      result.hint.clear();
    };
    if (m_result.v3 && !m_result.v4_unknown)
      excuse(ProbeStage::nfs4, "the server offers version 3 only");
    if (!m_result.v4 || m_result.v3 || m_result.v3_unknown)
      return;
    for (const ProbeStage which : {ProbeStage::portmapper, ProbeStage::mountd, ProbeStage::nfs3})
      excuse(which, "not needed for version 4");
    // Registered or not, mountd cannot be asked without a portmapper.
    if (stage(ProbeStage::mountd).outcome == StageOutcome::skipped)
      stage(ProbeStage::mountd) = {ProbeStage::mountd, StageOutcome::absent, {}, "not needed for version 4", {}, {}};
  }

  const NfsProbeRequest& m_request;
  const NfsPorts& m_ports;
  ServerAnswers m_answers;
  NfsProbe m_result;
};

/// Tries again until the deadline while there are no processes or descriptors left.
Result<WorkingChild> start_child(const NfsProbeRequest& request, const NfsPorts& ports, Deadline deadline) {
  for (;;) {
    auto child = WorkingChild::start(std::nullopt, [&](int fd) { ask_server(request, ports, fd); }, k_max_answers);
    if (child || Clock::now() + k_retry_interval > deadline)
      return child;
    std::this_thread::sleep_for(k_retry_interval);
  }
}

/// What the child reports. If it died, the stage after its last report is the one that it died in.
ServerAnswers ask(const NfsProbeRequest& request, const NfsPorts& ports, Deadline begin) {
  const Deadline deadline = begin + request.timeout;
  auto child = start_child(request, ports, deadline);
  if (!child) {
    ServerAnswers none;
    none[ProbeStage::resolve] = {true, {Fault::not_asked, errno}, {}};
    return none;
  }
  const bool in_time = child->drain_until(deadline + k_reap_grace);
  const bool ended = child->finish().has_value();
  auto answers = decode_last(child->result());
  if (in_time && ended && answers)
    return *answers;
  if (!answers)
    answers.emplace();
  const auto died = std::find_if(k_asking_order.begin(), k_asking_order.end(),
                                 [&](ProbeStage stage) { return !(*answers)[stage].asked; });
  if (died != k_asking_order.end())
    (*answers)[*died] = {true,
                         {in_time ? Fault::unreadable : Fault::timeout},
                         std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)};
  return *answers;
}

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
  const auto begin = Clock::now();
  NfsProbe probe = Conclusion(request, ports, ask(request, ports, begin)).draw();
  probe.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return probe;
}

} // namespace sharefs::sys

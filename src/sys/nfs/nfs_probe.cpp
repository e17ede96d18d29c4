#include "sys/nfs/nfs_probe.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/nfs_causes.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <thread>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_retry_interval{20};

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

/// Why a path cannot be mounted.
std::string refusal(const Failure& failure, Listing listing) {
  constexpr int no_entry = 2, access_denied = 13, not_a_directory = 20;
  if (failure.fault == Fault::timeout)
    return "no answer in time";
  if (failure.fault != Fault::status)
    return describe(failure);
  // An unlisted path, a wrong one and a denied client often get the same answer: the list tells them apart.
  if (listing == Listing::unlisted && (failure.error_number == no_entry || failure.error_number == access_denied))
    return "no such export";
  switch (failure.error_number) {
  case no_entry:
    return listing == Listing::exactly ? "exported, but the server has no such directory" : "no such directory";
  case access_denied:
    return ::geteuid() == 0 ? "access denied by server"
                            : "access denied by server (a `secure` export answers only to root)";
  case not_a_directory:
    return "not a directory";
  default:
    return "mountd reports error " + std::to_string(static_cast<std::uint32_t>(failure.error_number));
  }
}

/// It lets this host in, if only by Kerberos.
bool lets_in(const Failure& failure) {
  return failure.fault == Fault::none || failure.fault == Fault::only_kerberos;
}

/// Turns what the child reports into what people read; asks nothing.
class Conclusion {
 public:
  Conclusion(const NfsProbeRequest& request, const NfsPorts& ports, ServerAnswers answers)
      : m_request(request), m_ports(ports), m_answers(std::move(answers)), m_used(most_useful()) {}

  NfsProbe draw() {
    m_result.host = m_request.host;
    m_result.address = m_used.address;
    for (std::size_t i = 0; i < k_stage_count; ++i)
      m_result.stages.push_back(conclude(static_cast<ProbeStage>(i)));
    m_result.exports = m_used.exports;
    m_result.v3 = is_ok(ProbeStage::nfs3);
    m_result.v4 = is_ok(ProbeStage::nfs4);
    m_result.v3_unknown = is_unknown(ProbeStage::nfs3);
    m_result.v4_unknown = is_unknown(ProbeStage::nfs4);
    explain_refusal();
    name_addresses();
    conclude_access();
    excuse_what_is_not_needed();
    return std::move(m_result);
  }

 private:
  StageResult& stage(ProbeStage which) { return m_result.stages[static_cast<std::size_t>(which)]; }
  bool is_ok(ProbeStage which) { return stage(which).outcome == StageOutcome::ok; }
  bool is_unknown(ProbeStage which) { return !is_ok(which) && m_used[which].failure.fault != Fault::unsupported; }

  /// The first of those addresses that are as useful as any.
  [[nodiscard]] AddressAnswers most_useful() const {
    const auto found = std::ranges::max_element(
        m_answers.addresses, {}, [this](const AddressAnswers& one) { return usefulness(m_request, one); });
    return found == m_answers.addresses.end() ? AddressAnswers() : *found;
  }

  [[nodiscard]] std::uint16_t port_of(ProbeStage which) const {
    if (which == ProbeStage::portmapper)
      return m_ports.portmapper;
    return which == ProbeStage::mountd ? m_used.mountd_port : m_ports.nfs;
  }

  [[nodiscard]] StageResult conclude(ProbeStage which) const {
    const StageAnswer& answer = which == ProbeStage::resolve ? m_answers.resolve : m_used[which];
    if (!answer.asked)
      return {which, StageOutcome::skipped, {}, {}, {}, {}};
    if (answer.failure.fault != Fault::none)
      return failed_stage(which, answer, port_of(which));
    return {which, StageOutcome::ok, answer.round_trip, detail_of(which), {}, {}};
  }

  [[nodiscard]] std::string detail_of(ProbeStage which) const {
    std::vector<std::string> addresses;
    switch (which) {
    case ProbeStage::resolve:
      for (const AddressAnswers& one : m_answers.addresses)
        addresses.push_back(one.address);
      return join(addresses, ", ");
    case ProbeStage::connect:
      return m_used.address + " port " + std::to_string(m_ports.nfs);
    case ProbeStage::portmapper:
      return count_of(m_used.services, "registered service");
    case ProbeStage::mountd:
      return "port " + std::to_string(m_used.mountd_port);
    case ProbeStage::nfs3:
      return "version 3";
    case ProbeStage::nfs4:
      return "version 4";
    case ProbeStage::exports:
      return count_of(m_used.exports.size(), "export");
    case ProbeStage::access:
      break; // conclude_access() counts
    }
    return "";
  }

  /// Nobody listens on the NFS port; the portmapper may know why.
  void explain_refusal() {
    if (m_used[ProbeStage::connect].failure != Failure{Fault::connection, ECONNREFUSED} ||
        !is_ok(ProbeStage::portmapper))
      return;
    StageResult& result = stage(ProbeStage::connect);
    if (m_used.nfs_port == 0) {
      result.cause = "the host is up and runs rpcbind, but its NFS server is stopped";
    } else if (m_used.nfs_port == m_ports.nfs) {
      result.cause = "the NFS server is registered but does not listen: it was killed, or is just stopping or starting";
      result.hint = "on the server: `systemctl restart nfs-server`";
    } else {
      result.cause = "the NFS server listens on port " + std::to_string(m_used.nfs_port);
      result.hint = "mount with the option `port=" + std::to_string(m_used.nfs_port) + "`";
    }
  }

  /// Of the host's several addresses: how each that was asked failed to offer NFS, or nothing if it does.
  [[nodiscard]] static std::string why_dead(const AddressAnswers& one) {
    const Failure& connected = one[ProbeStage::connect].failure;
    if (one.offers_nfs())
      return "";
    return describe(connected.fault != Fault::none ? connected : one[ProbeStage::nfs4].failure);
  }
  [[nodiscard]] std::vector<AddressAnswers> asked_addresses() const {
    std::vector<AddressAnswers> asked;
    if (m_answers.addresses.size() > 1)
      std::ranges::copy_if(m_answers.addresses, std::back_inserter(asked), [](const AddressAnswers& one) {
        return one[ProbeStage::connect].asked && (!one.is_ok(ProbeStage::connect) || one[ProbeStage::nfs3].asked);
      });
    return asked;
  }

  /// A server with several addresses can be dead by one of them.
  void name_addresses() {
    std::vector<std::string> words; // "fd00::1: no answer", "10.0.0.1: Connection refused"
    for (const AddressAnswers& one : asked_addresses())
      if (const std::string why = why_dead(one); !why.empty())
        words.push_back(one.address + ": " + why);
    if (words.empty())
      return;
    StageResult& result = stage(ProbeStage::connect);
    if (result.outcome == StageOutcome::ok)
      result.detail += "; " + join(words, ", ");
    else
      result.detail = "TCP port " + std::to_string(m_ports.nfs) + " of " + join(words, ", ");
  }

  /// What path number `index` got by all addresses, where the one that is used does not let this host in.
  void compare_addresses(std::size_t index, Listing listing, ExportAccess& access) const {
    std::vector<std::string> refusals;
    for (const AddressAnswers& one : asked_addresses()) {
      std::string why = why_dead(one);
      if (why.empty() && index < one.access.size()) {
        if (lets_in(one.access[index])) {
          const bool allowed = one.access[index].fault == Fault::none;
          access = {access.directory, allowed, describe(one.access[index]), one.address};
          return;
        }
        why = refusal(one.access[index], listing);
      }
      refusals.push_back(one.address + ": " + (why.empty() ? "not asked" : why));
    }
    if (!refusals.empty())
      access.reason += " (" + join(refusals, ", ") + ")";
  }

  /// Where no address lets this host in: a look-up does not tell a path that is missing from one that is hidden.
  [[nodiscard]] std::string reason_by_version_4(std::size_t index) const {
    std::string reason = "v4 only: not tested";
    for (const AddressAnswers& one : asked_addresses()) {
      if (index >= one.access.size())
        continue;
      if (one.access[index].fault == Fault::status)
        return "access denied by server, or it has no such directory";
      reason = describe(one.access[index]);
    }
    return reason;
  }

  void conclude_access() {
    if (!m_request.want_access)
      return;
    if (!m_used[ProbeStage::exports].asked) {
      for (std::size_t i = 0; i < m_request.paths.size() && m_result.v4; ++i) {
        m_result.access.push_back({m_request.paths[i], false, reason_by_version_4(i)});
        compare_addresses(i, Listing::below, m_result.access.back());
      }
      return;
    }
    for (const std::string& path : access_paths(m_request, m_result.exports)) {
      const std::size_t index = m_result.access.size();
      const Listing listing = listing_of(normalize_path(path), m_result.exports);
      ExportAccess access{path, false, "no answer in time"};
      if (m_used[ProbeStage::access].asked && index < m_used.access.size()) {
        const Failure& failure = m_used.access[index];
        access.allowed = failure.fault == Fault::none;
        access.reason = access.allowed ? "" : refusal(failure, listing);
        access.address = lets_in(failure) ? m_used.address : "";
      }
      if (access.address.empty())
        compare_addresses(index, listing, access);
      m_result.access.push_back(std::move(access));
    }
    conclude_access_stage();
  }

  void conclude_access_stage() {
    const std::size_t asked = m_result.access.size();
    if (asked == 0)
      return;
    const auto allowed = static_cast<std::size_t>(std::ranges::count_if(m_result.access, &ExportAccess::allowed));
    StageResult& result = stage(ProbeStage::access);
    result = {ProbeStage::access,
              StageOutcome::ok,
              m_used[ProbeStage::access].round_trip,
              std::to_string(allowed) + " of " + count_of(asked, "export"),
              {},
              {}};
    // Exports for other clients are no fault, unless they were asked for by name.
    if (allowed == asked || (allowed > 0 && m_request.paths.empty()))
      return;
    const auto refused = std::ranges::find_if_not(m_result.access, &ExportAccess::allowed);
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
  void excuse_what_is_not_needed() {
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
  AddressAnswers m_used; ///< all that is said but for access by another address is said of this one
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

/// What the child reports. If it died, the stage after its last report is the one that it died in: the server sent
/// something there that cannot be read.
ServerAnswers ask(const NfsProbeRequest& request, const NfsPorts& ports, Deadline begin) {
  const Deadline deadline = begin + request.timeout;
  auto child = start_child(request, ports, deadline);
  if (!child)
    return {{true, {Fault::not_asked, errno}, {}}, {}, 0};
  const bool in_time = child->drain_until(deadline + k_reap_grace);
  const bool ended = child->finish().has_value();
  auto answers = decode_last(child->result());
  if (in_time && ended && answers)
    return *answers;
  const StageAnswer died{true,
                         {in_time ? Fault::unreadable : Fault::timeout},
                         std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)};
  if (!answers || answers->addresses.empty())
    return {died, {}, 0};
  AddressAnswers& asking = answers->addresses[answers->asking];
  const auto next = std::ranges::find_if(k_asking_order, [&asking](ProbeStage stage) { return !asking[stage].asked; });
  if (next != k_asking_order.end())
    asking[*next] = died;
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

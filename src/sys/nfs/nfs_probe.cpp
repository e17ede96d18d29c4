#include "sys/nfs/nfs_probe.hpp"

#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/sandbox.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <netdb.h>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_others_patience{250}; ///< for other addresses, once one has answered
/// The stages in the order in which an address is asked.
constexpr auto k_asking_order =
    std::to_array<ProbeStage>({ProbeStage::connect, ProbeStage::nfs3, ProbeStage::nfs4, ProbeStage::portmapper,
                               ProbeStage::mountd, ProbeStage::exports, ProbeStage::access});

StageResult& stage_of(NfsProbe& probe, ProbeStage which) {
  return probe.stages[static_cast<std::size_t>(which)];
}
const StageResult& stage_of(const NfsProbe& probe, ProbeStage which) {
  return probe.stages[static_cast<std::size_t>(which)];
}
bool is_ok(const NfsProbe& probe, ProbeStage which) {
  return stage_of(probe, which).outcome == StageOutcome::ok;
}

/// Why a path cannot be mounted. An unlisted path, a wrong one and a denied client often get the same answer: the
/// export list tells them apart.
std::string refusal(const Failure& failure, const std::string& path, const std::vector<ExportListing>& exports) {
  constexpr int no_entry = 2, access_denied = 13, not_a_directory = 20;
  if (failure.fault == Fault::timeout)
    return "no answer in time";
  if (failure.fault != Fault::status)
    return describe(failure);
  const auto is_listed = [&](const ExportListing& one) { return is_under(path, normalize_path(one.directory)); };
  const auto is_exactly = [&](const ExportListing& one) { return path == normalize_path(one.directory); };
  if (std::ranges::none_of(exports, is_listed) &&
      (failure.error_number == no_entry || failure.error_number == access_denied))
    return "no such export";
  switch (failure.error_number) {
  case no_entry:
    return std::ranges::any_of(exports, is_exactly) ? "exported, but the server has no such directory"
                                                    : "no such directory";
  case access_denied:
    return ::geteuid() == 0 ? "access denied by server"
                            : "access denied by server (a `secure` export answers only to root)";
  case not_a_directory:
    return "not a directory";
  default:
    return "mountd reports error " + std::to_string(static_cast<std::uint32_t>(failure.error_number));
  }
}

// ---- what one address answers ----

std::vector<ExportAccess> access_of(const NfsProbeRequest& request, const AddressAnswers& answers,
                                    const NfsProbe& probe) {
  std::vector<ExportAccess> access;
  const bool by_version4 = !answers[ProbeStage::exports].asked;
  if (!request.want_access || (by_version4 && !probe.v4))
    return access;
  const bool is_known = answers[ProbeStage::access].asked || (by_version4 && !probe.v3);
  for (const std::string& path : access_paths(request, answers.exports)) {
    const auto index = access.size();
    const auto failure = is_known && index < answers.access.size() ? answers.access[index] : Failure{Fault::timeout};
    const bool allowed = failure.fault == Fault::none;
    const bool lets_in = allowed || failure.fault == Fault::only_kerberos;
    std::string reason;
    if (by_version4 &&
        failure.fault == Fault::status) // a look-up does not tell a path that is missing from a hidden one
      reason = "access denied by server, or it has no such directory";
    else if (!allowed)
      reason = refusal(failure, normalize_path(path), answers.exports);
    access.push_back({path, allowed, reason, lets_in ? probe.address : ""});
  }
  return access;
}

/// Turns what the child reports into what people read; asks nothing.
NfsProbe conclude(const NfsProbeRequest& request, const NfsPorts& ports, const std::string& address,
                  const AddressAnswers& answers) {
  NfsProbe probe;
  probe.address = address;
  const std::array<std::string, k_stage_count> details{"", // of resolve, by the caller
                                                       address + " port " + std::to_string(ports.nfs),
                                                       answers.mountd_port == 0 ? "does not know mountd"
                                                                                : "knows mountd",
                                                       "port " + std::to_string(answers.mountd_port),
                                                       "version 3",
                                                       "version 4",
                                                       count_of(answers.exports.size(), "export"),
                                                       ""}; // of access, when all addresses have answered
  for (std::size_t i = 0; i < k_stage_count; ++i) {
    const auto which = static_cast<ProbeStage>(i);
    const StageAnswer& answer = answers[which];
    const auto port = which == ProbeStage::portmapper ? ports.portmapper
                      : which == ProbeStage::mountd   ? answers.mountd_port
                                                      : ports.nfs;
    if (!answer.asked)
      probe.stages.push_back({which, StageOutcome::skipped, {}, {}, {}, {}});
    else if (answer.failure.fault != Fault::none)
      probe.stages.push_back(failed_stage(which, answer, port));
    else
      probe.stages.push_back({which, StageOutcome::ok, answer.round_trip, details[i], {}, {}});
  }
  const auto is_unknown = [&](ProbeStage which) {
    return !is_ok(probe, which) && answers[which].failure.fault != Fault::unsupported;
  };
  probe.exports = answers.exports;
  probe.v3 = is_ok(probe, ProbeStage::nfs3);
  probe.v4 = is_ok(probe, ProbeStage::nfs4);
  probe.v3_unknown = is_unknown(ProbeStage::nfs3);
  probe.v4_unknown = is_unknown(ProbeStage::nfs4);
  probe.access = access_of(request, answers, probe);
  return probe;
}

/// What an address is asked of: the child's report. If it died, the stage after its last report is the one that it died
/// in: the server sent something there that cannot be read.
AddressAnswers answers_of(WorkingChild& child, bool in_time, Deadline begin) {
  const bool ended = child.finish().has_value();
  auto answers = decode_last(child.result());
  if (in_time && ended && answers)
    return *answers;
  auto known = answers.value_or(AddressAnswers());
  const auto next = std::ranges::find_if(k_asking_order, [&known](ProbeStage stage) { return !known[stage].asked; });
  if (next != k_asking_order.end())
    known[*next] = {true,
                    *next == ProbeStage::connect && !in_time ? Failure{Fault::connection, ETIMEDOUT}
                                                             : Failure{in_time ? Fault::unreadable : Fault::timeout},
                    std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)};
  return known;
}

// ---- a host with several addresses ----

/// How well this host could use an address: 0 not at all, 1 it accepts connections, 2 NFS answers, one more for each
/// path that may be mounted, and the most for all of them.
std::size_t usefulness(const NfsProbeRequest& request, const NfsProbe& probe) {
  if (!probe.v3 && !probe.v4)
    return is_ok(probe, ProbeStage::connect) ? 1 : 0;
  const auto allowed = static_cast<std::size_t>(
      std::ranges::count_if(probe.access, [](const ExportAccess& one) { return !one.address.empty(); }));
  const bool all = allowed > 0 && allowed == probe.access.size();
  return all || !request.want_access ? std::numeric_limits<std::size_t>::max() : 2 + allowed;
}

/// Asks all addresses at the same time, each by a child. When one lets this host in, or has answered otherwise, the
/// others get little more time, in the latter case only those that have not even accepted.
std::vector<NfsProbe> ask_each(const NfsProbeRequest& request, const NfsPorts& ports,
                               const std::vector<std::string>& addresses, Deadline end) {
  std::vector<NfsProbe> probes(addresses.size());
  std::atomic<Deadline> answered = Deadline::max(), enough = Deadline::max();
  const auto ask = [&](std::size_t index) {
    const auto begin = Clock::now();
    auto limited = request;
    limited.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(end - begin);
    const auto address = read_address(addresses[index]);
    auto child = WorkingChild::start(
        std::nullopt, [&](int fd) { ask_address(limited, address->front(), ports, fd); }, k_max_answers);
    const auto given_up = [&] {
      return Clock::now() >= (child->result().empty() ? std::min(answered.load(), enough.load()) : enough.load());
    };
    AddressAnswers answers;
    if (child)
      answers = answers_of(*child, child->drain_until(end + k_reap_grace, given_up), begin);
    else
      answers[ProbeStage::connect] = {true, {Fault::not_asked, errno}, {}};
    probes[index] = conclude(request, ports, addresses[index], answers);
    const auto useful = usefulness(request, probes[index]);
    if (useful > 0)
      answered = std::min(answered.load(), deadline_in(k_others_patience));
    if (useful == std::numeric_limits<std::size_t>::max())
      enough = std::min(enough.load(), deadline_in(k_others_patience));
  };
  in_parallel(addresses.size(), addresses.size(), ask);
  return probes;
}

/// How an address failed to offer NFS, or nothing if it does.
std::string why_dead(const NfsProbe& probe) {
  if (probe.v3 || probe.v4)
    return "";
  const auto& connect = stage_of(probe, ProbeStage::connect);
  const auto& detail = connect.outcome == StageOutcome::ok ? stage_of(probe, ProbeStage::nfs4).detail : connect.detail;
  const auto colon = detail.find(": "); // behind "TCP port 2049"
  return colon == std::string::npos ? detail : detail.substr(colon + 2);
}

/// The most useful of `probes`, the first of those that are as useful as any; with what the others answered where it
/// does not let this host in.
NfsProbe merge(const NfsProbeRequest& request, const NfsPorts& ports, const std::vector<NfsProbe>& probes) {
  NfsProbe merged =
      *std::ranges::max_element(probes, {}, [&request](const NfsProbe& one) { return usefulness(request, one); });
  if (probes.size() == 1)
    return merged;
  std::vector<std::string> dead; // "fd00::1: no answer", "10.0.0.1: Connection refused"
  for (const NfsProbe& one : probes)
    if (const std::string why = why_dead(one); !why.empty())
      dead.push_back(one.address + ": " + why);
  StageResult& connect = stage_of(merged, ProbeStage::connect);
  if (!dead.empty() && connect.outcome == StageOutcome::ok)
    connect.detail += "; " + join(dead, ", ");
  else if (!dead.empty())
    connect.detail = "TCP port " + std::to_string(ports.nfs) + " of " + join(dead, ", ");
  for (std::size_t index = 0; index < merged.access.size(); ++index) {
    ExportAccess& access = merged.access[index];
    std::vector<std::string> refusals;
    for (const NfsProbe& one : probes) {
      const bool is_same = index < one.access.size() && one.access[index].directory == access.directory;
      if (access.address.empty() && is_same && !one.access[index].address.empty())
        access = one.access[index];
      refusals.push_back(one.address + ": " + (is_same ? one.access[index].reason : why_dead(one)));
    }
    if (access.address.empty())
      access.reason += " (" + join(refusals, ", ") + ")";
  }
  return merged;
}

// ---- the whole ----

void conclude_access_stage(const NfsProbeRequest& request, NfsProbe& probe) {
  const std::size_t asked = probe.access.size();
  if (asked == 0 || stage_of(probe, ProbeStage::exports).outcome == StageOutcome::skipped)
    return;
  const auto allowed = static_cast<std::size_t>(std::ranges::count_if(probe.access, &ExportAccess::allowed));
  StageResult& result = stage_of(probe, ProbeStage::access);
  result = {ProbeStage::access,
            StageOutcome::ok,
            result.round_trip,
            std::to_string(allowed) + " of " + count_of(asked, "export"),
            {},
            {}};
  // Exports for other clients are no fault, unless they were asked for by name.
  if (allowed == asked || (allowed > 0 && request.paths.empty()))
    return;
  const auto refused = std::ranges::find_if_not(probe.access, &ExportAccess::allowed);
  result.outcome = StageOutcome::failed;
  result.cause = refused->directory + ": " + refused->reason;
  result.hint = ::geteuid() == 0
                    ? "compare this host's address with the export's clients, then `sharefs export --all` on the server"
                    : "mounting is done by root, who asks from a port below 1024: ask as root to see what a mount "
                      "would get";
}

/// What only NFS version 3 needs is no failure of a server that offers version 4 alone, and the other way round. A
/// version that was not answered in time may well be offered, and excuses nothing.
void excuse_what_is_not_needed(NfsProbe& probe) {
  const auto excuse = [&probe](ProbeStage which, const char* detail) {
    if (StageResult& result = stage_of(probe, which); result.outcome == StageOutcome::failed)
      result = {which, StageOutcome::absent, result.round_trip, result.detail + " (" + detail + ")", {}, {}};
  };
  if (probe.v3 && !probe.v4_unknown)
    excuse(ProbeStage::nfs4, "the server offers version 3 only");
  if (!probe.v4 || probe.v3 || probe.v3_unknown)
    return;
  for (const ProbeStage which : {ProbeStage::portmapper, ProbeStage::mountd, ProbeStage::nfs3})
    excuse(which, "not needed for version 4");
  // Registered or not, mountd cannot be asked without a portmapper.
  if (StageResult& mountd = stage_of(probe, ProbeStage::mountd); mountd.outcome == StageOutcome::skipped)
    mountd = {ProbeStage::mountd, StageOutcome::absent, {}, "not needed for version 4", {}, {}};
}

/// Its addresses, by a child without privileges: a name service can block for minutes, and runs code of others.
Result<std::vector<std::string>> resolved_addresses(const NfsProbeRequest& request) {
  if (const auto address = read_address(request.host))
    return std::vector{address->front().text};
  auto resolved = call(std::nullopt, request.timeout, [&request]() -> Result<std::vector<std::string>> {
    if (const int error = drop_privileges(); error != 0)
      return fail(errno_error(error, "cannot drop privileges"));
    const auto found = resolve_host(request.host);
    if (!found)
      return fail(found.error() == EAI_NONAME ? ErrorCode::not_found : ErrorCode::config,
                  ::gai_strerror(found.error()));
    std::vector<std::string> addresses;
    for (const Address& one : *found)
      addresses.push_back(one.text);
    return addresses;
  });
  const auto is_address = [](const std::string& text) { return read_address(text).has_value(); };
  if (resolved && (resolved->size() > k_max_addresses || !std::ranges::all_of(*resolved, is_address)))
    return fail(ErrorCode::config, "it gave what is no address");
  return resolved;
}

StageResult unresolved(const Error& error, Deadline begin) {
  const auto fault = error.code == ErrorCode::not_found ? Fault::no_such_name
                     : error.code == ErrorCode::config  ? Fault::name_service
                     : error.code == ErrorCode::timeout ? Fault::timeout
                                                        : Fault::not_asked;
  auto result =
      failed_stage(ProbeStage::resolve,
                   {true, {fault}, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)}, 0);
  if (fault == Fault::name_service || fault == Fault::not_asked)
    result.detail += error.message;
  return result;
}

} // namespace

const StageResult* NfsProbe::failing(int version) const {
  const auto first = [this](const auto& is_bad) {
    const auto found = std::ranges::find_if(stages, is_bad);
    return found == stages.end() ? nullptr : &*found;
  };
  using enum ProbeStage;
  const auto* const for_v3 =
      first([](const StageResult& one) { return one.stage <= nfs3 && one.outcome != StageOutcome::ok; });
  const auto* const for_v4 = first([](const StageResult& one) {
    return (one.stage <= connect || one.stage == nfs4) && one.outcome != StageOutcome::ok;
  });
  if (version == 3)
    return for_v3;
  if (version == 4)
    return for_v4;
  if (for_v3 == nullptr || for_v4 == nullptr)
    return nullptr;
  const auto* const failed =
      first([](const StageResult& one) { return one.stage <= nfs4 && one.outcome == StageOutcome::failed; });
  return failed != nullptr ? failed : for_v3;
}

NfsProbe probe_nfs_server(const NfsProbeRequest& request, const NfsPorts& ports) {
  const auto begin = Clock::now();
  const auto addresses = resolved_addresses(request);
  NfsProbe probe = conclude(request, ports, "", {}); // nothing is asked yet
  if (addresses) {
    const auto resolved = Clock::now();
    probe = merge(request, ports, ask_each(request, ports, *addresses, begin + request.timeout));
    stage_of(probe, ProbeStage::resolve) = {ProbeStage::resolve,
                                            StageOutcome::ok,
                                            std::chrono::duration_cast<std::chrono::microseconds>(resolved - begin),
                                            join(*addresses, ", "),
                                            {},
                                            {}};
    conclude_access_stage(request, probe);
    excuse_what_is_not_needed(probe);
  } else {
    stage_of(probe, ProbeStage::resolve) = unresolved(addresses.error(), begin);
  }
  probe.host = request.host;
  probe.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return probe;
}

} // namespace sharefs::sys

#include "sys/nfs/nfs_probe.hpp"

#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace sharefs::sys {

extern const char k_causes[]; // causes.txt: the usual causes of a failed stage, and their cures

namespace {

constexpr std::chrono::milliseconds k_wait_for_others{250}; ///< for the other addresses, once one has answered
/// The stages in the order in which they are asked.
constexpr auto k_asking_order =
    std::to_array<ProbeStage>({ProbeStage::connect, ProbeStage::nfs3, ProbeStage::nfs4, ProbeStage::portmapper,
                               ProbeStage::mountd, ProbeStage::exports, ProbeStage::access});

// ---- one answer in words ----

std::string describe(const ServerAnswer& answer) {
  static constexpr std::array k_words{"",
                                      "",
                                      "no host of this name is known",
                                      "the name service failed: ",
                                      "",
                                      "",
                                      "the server closed the connection",
                                      "not offered",
                                      "the server refuses this host's calls",
                                      "the server sent a reply that cannot be read",
                                      "not registered with the portmapper",
                                      "nothing is exported",
                                      "this host could not ask: ",
                                      "only Kerberos (krb5)",
                                      "NFS 4 refers to another server (referral)",
                                      ""};
  if (answer.fault == Fault::timeout || (answer.fault == Fault::connection && answer.error_number == ETIMEDOUT))
    return "no answer within " + format_duration(answer.round_trip.count());
  return name_in(k_words, answer.fault) + (answer.error_number == 0 ? "" : errno_text(answer.error_number));
}

/// Finds the usual cause of a failure and its cure, in the first row with which its description begins.
std::array<std::string, 2> find_cause(ProbeStage stage, const std::string& what) {
  static const auto k_rows = split_lines(k_causes);
  for (const auto& key : {fmt::format("{}: {}", to_string(stage), what), "*: " + what})
    for (auto row = k_rows.begin(); k_rows.end() - row > 2; ++row)
      if (!row->empty() && key.starts_with(*row))
        return {std::string(trim(row[1])), std::string(trim(row[2]))};
  return {};
}

// ---- the answers of one address ----

StageResult& stage_of(NfsProbe& probe, ProbeStage which) {
  return probe.stages[static_cast<std::size_t>(which)];
}

std::chrono::microseconds since(Deadline begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

bool allows_mount(const ServerAnswer& answer) {
  return answer.fault == Fault::none || answer.fault == Fault::only_kerberos || answer.fault == Fault::moved;
}

/// NFS-Ganesha's mountd answers EACCES for a missing directory below an export, too.
const std::string k_denied_or_missing = "access denied by server, or it has no such directory";

constexpr int no_entry = 2; // of mountd and of NFS 4

std::string may_want_root() {
  return ::geteuid() == 0 ? "" : " (a `secure` export answers only to root)";
}

using Directories = std::set<std::string>; ///< of exports, as normal paths

bool is_below_one_of(const Directories& directories, std::string path) {
  while (!directories.contains(path) && path != "/")
    path = parent_path(path);
  return directories.contains(path);
}

/// Explains why a path cannot be mounted from an address; empty: it can. A path that is not exported, one that does not
/// exist and a client without access often get the same answer; the export list distinguishes them.
std::string explain_denial(const PathAnswers& given, const std::string& path, bool without_mountd,
                           const Directories& exported) {
  constexpr int not_permitted = 1, access_denied = 13, not_a_directory = 20;
  if (given.by_mountd.fault == Fault::none || given.by_nfs4.fault == Fault::none || given.by_nfs4.fault == Fault::moved)
    return "";
  const ServerAnswer& answer = without_mountd ? given.by_nfs4 : given.by_mountd;
  if (answer.fault == Fault::timeout)
    return "no answer in time";
  if (answer.fault != Fault::status)
    return describe(answer);
  const int error = answer.error_number;
  if (without_mountd) // a lookup has the same answer for a missing path and a hidden one
    return error == not_permitted ? "access denied by server" + may_want_root() : k_denied_or_missing;
  const bool is_listed = is_below_one_of(exported, path), is_exactly = exported.contains(path);
  if (!is_listed && (error == no_entry || error == access_denied))
    return "no such export";
  if (error == no_entry)
    return is_exactly ? "exported, but the server has no such directory" : "no such directory";
  if (error == access_denied)
    return (is_exactly ? "access denied by server" : k_denied_or_missing) + may_want_root();
  return error == not_a_directory ? "not a directory"
                                  : "mountd reports error " + std::to_string(static_cast<std::uint32_t>(error));
}

/// Returns the only version by which a path may be mounted, or 0; see ExportAccess::version.
int find_only_version(const PathAnswers& given) {
  const bool by_3 = allows_mount(given.by_mountd), by_4 = allows_mount(given.by_nfs4);
  // Another refusal, as of a directory above that is closed to root, does not show that NFS 4 lacks the path.
  const bool is_missing_in_4 = given.by_nfs4 == ServerAnswer{Fault::status, no_entry};
  if (!is_answer(given.by_mountd) || !is_answer(given.by_nfs4) || by_3 == by_4)
    return 0;
  return by_4 ? 4 : is_missing_in_4 ? 3 : 0;
}

/// Adds the access to each path that was asked, of mountd or by lookups of NFS 4.
void add_access(const NfsProbeRequest& request, const AddressAnswers& answers, NfsProbe& probe) {
  const bool without_mountd = answers[ProbeStage::exports].fault == Fault::unasked;
  if (without_mountd && answers.access.empty())
    return;
  Directories exported;
  for (const ExportListing& one : answers.exports)
    exported.insert(normalize_path(one.directory));
  for (const std::string& path : access_paths(request, answers.exports)) {
    const auto given =
        probe.access.size() < answers.access.size() ? answers.access[probe.access.size()] : PathAnswers();
    auto reason = explain_denial(given, normalize_path(path), without_mountd, exported);
    const bool allowed = reason.empty();
    if (given.by_nfs4.fault == Fault::moved) // whether the other server answers is not known
      reason = describe(given.by_nfs4);
    const bool lets_in = allows_mount(given.by_mountd) || allows_mount(given.by_nfs4);
    probe.access.push_back({path, allowed, std::move(reason), lets_in ? probe.address : "", find_only_version(given)});
  }
}

/// The result for one address, and why it does not offer NFS ("": it does).
struct AskedAddress {
  NfsProbe probe;
  std::string failure = {};
};

/// Describes the numbers of a child's report in words.
AskedAddress convert(const NfsProbeRequest& request, const std::string& address, const AddressAnswers& answers) {
  const NfsPorts& ports = request.ports;
  const std::array<std::string, k_stage_count> details{"", // for the stage resolve, which the caller fills in
                                                       fmt::format("{} port {}", address, ports.nfs),
                                                       ports.mountd != 0          ? "not asked"
                                                       : answers.mountd_port == 0 ? "does not know mountd"
                                                                                  : "knows mountd",
                                                       fmt::format("port {}", answers.mountd_port),
                                                       "version 3",
                                                       fmt::format("version 4.{}", answers.v4_minor),
                                                       count_of(answers.exports.size(), "export"),
                                                       ""}; // for the stage access, see summarize_access()
  NfsProbe probe;
  probe.address = address;
  probe.v4_minor = answers.v4_minor;
  probe.exports = answers.exports;
  for (std::size_t i = 0; i < k_stage_count; ++i) {
    const auto which = static_cast<ProbeStage>(i);
    const ServerAnswer& answer = answers.stages[i];
    const auto port = which == ProbeStage::portmapper ? ports.portmapper
                      : which == ProbeStage::mountd   ? answers.mountd_port
                                                      : ports.nfs;
    probe.stages.push_back(answer.fault == Fault::unasked ? StageResult{which}
                           : answer.fault == Fault::none
                               ? StageResult{which, StageOutcome::ok, answer.round_trip, details[i]}
                               : failed_stage(which, answer, port));
  }
  const Fault nfs3 = answers[ProbeStage::nfs3].fault, nfs4 = answers[ProbeStage::nfs4].fault;
  probe.v3 = nfs3 == Fault::none;
  probe.v4 = nfs4 == Fault::none;
  probe.v3_unknown = !probe.v3 && nfs3 != Fault::unsupported;
  probe.v4_unknown = !probe.v4 && nfs4 != Fault::unsupported;
  add_access(request, answers, probe);
  const bool is_connected = answers[ProbeStage::connect].fault == Fault::none;
  const ServerAnswer& last = answers[is_connected ? ProbeStage::nfs4 : ProbeStage::connect];
  auto failure = probe.v3 || probe.v4 ? std::string() : describe(last);
  return {std::move(probe), std::move(failure)};
}

/// Reads the child's report. If the child has died, it died in the stage after its last report, because the server sent
/// something that cannot be read.
AddressAnswers answers_of(WorkingChild& child, bool in_time, Deadline begin) {
  const bool ended = child.finish().has_value();
  auto known = decode_last(child.result());
  if (in_time && ended && known)
    return *known;
  auto answers = known.value_or(AddressAnswers());
  for (const ProbeStage stage : k_asking_order)
    if (answers[stage].fault == Fault::unasked) {
      const bool is_unconnected = stage == ProbeStage::connect && !in_time;
      answers[stage] = is_unconnected ? ServerAnswer{Fault::connection, ETIMEDOUT, since(begin)}
                                      : ServerAnswer{in_time ? Fault::unreadable : Fault::timeout, 0, since(begin)};
      break;
    }
  return answers;
}

// ---- a host with several addresses ----

constexpr std::size_t k_most_useful = std::numeric_limits<std::size_t>::max();

/// Rates how well this host can use an address: 0 not at all, 1 it accepts connections, 2 NFS answers, one more for
/// each path that may be mounted, and the maximum if all may be.
std::size_t usefulness(const NfsProbeRequest& request, const NfsProbe& probe) {
  if (!probe.v3 && !probe.v4)
    return probe.result_of(ProbeStage::connect).outcome == StageOutcome::ok ? 1 : 0;
  const auto allowed = static_cast<std::size_t>(
      std::ranges::count_if(probe.access, [](const ExportAccess& one) { return !one.address.empty(); }));
  const bool all = allowed > 0 && allowed == probe.access.size();
  return all || !request.want_access ? k_most_useful : 2 + allowed;
}

/// Asks all addresses at the same time, each in a child. Once one has answered, addresses that have not accepted the
/// connection get only k_wait_for_others more. Once one allows this host to mount all, this holds for all others.
std::vector<AskedAddress> ask_each(const NfsProbeRequest& request, const std::vector<std::string>& addresses,
                                   Deadline end) {
  std::vector<AskedAddress> all(addresses.size());
  std::atomic<Deadline> answered = Deadline::max(), enough = Deadline::max();
  in_parallel(addresses.size(), addresses.size(), [&](std::size_t index) {
    const auto begin = Clock::now();
    auto limited = request;
    limited.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(end - begin);
    const auto address = read_address(addresses[index]);
    auto child = WorkingChild::start(std::nullopt, [&](int fd) { ask_address(limited, *address, fd); }, k_max_answers);
    AddressAnswers answers;
    answers[ProbeStage::connect] = {Fault::not_asked};
    const auto given_up = [&] {
      return Clock::now() >= (child->result().empty() ? std::min(answered.load(), enough.load()) : enough.load());
    };
    if (child)
      answers = answers_of(*child, child->drain_until(end + k_reap_grace, given_up), begin);
    all[index] = convert(request, addresses[index], answers);
    if (!child)
      stage_of(all[index].probe, ProbeStage::connect).detail += child.error().message;
    const auto useful = usefulness(request, all[index].probe);
    if (useful > 0)
      answered = std::min(answered.load(), deadline_in(k_wait_for_others));
    if (useful == k_most_useful)
      enough = std::min(enough.load(), deadline_in(k_wait_for_others));
  });
  return all;
}

/// Returns the result of the most useful address (the first, if several are equal), with the answers of the others for
/// paths that it does not let this host mount, and the addresses that do not offer NFS.
NfsProbe merge(const NfsProbeRequest& request, const std::vector<AskedAddress>& all) {
  NfsProbe probe =
      std::ranges::max_element(all, {}, [&](const AskedAddress& one) { return usefulness(request, one.probe); })->probe;
  if (all.size() == 1)
    return probe;
  std::vector<std::string> dead; // "fd00::1: no answer", "10.0.0.1: Connection refused"
  for (const AskedAddress& one : all)
    if (!one.failure.empty())
      dead.push_back(one.probe.address + ": " + one.failure);
  if (auto& [stage, outcome, took, detail, cause, hint] = stage_of(probe, ProbeStage::connect); !dead.empty())
    detail = (outcome == StageOutcome::ok ? detail + "; " : fmt::format("TCP port {} of ", request.ports.nfs)) +
             join(dead, ", ");
  for (std::size_t i = 0; i < probe.access.size(); ++i) {
    ExportAccess& one = probe.access[i];
    std::vector<std::string> refusals;
    for (auto other = all.begin(); one.address.empty() && other != all.end(); ++other) {
      const auto& theirs = other->probe.access;
      const bool is_asked = i < theirs.size() && theirs[i].directory == one.directory;
      refusals.push_back(other->probe.address + ": " + (is_asked ? theirs[i].reason : other->failure));
      if (is_asked && !theirs[i].address.empty())
        one = theirs[i];
    }
    if (one.address.empty())
      one.reason += " (" + join(refusals, ", ") + ")";
  }
  return probe;
}

// ---- the result of all addresses ----

void summarize_access(const NfsProbeRequest& request, NfsProbe& probe) {
  const std::size_t asked = probe.access.size();
  if (asked == 0 || stage_of(probe, ProbeStage::exports).outcome == StageOutcome::skipped)
    return;
  const auto allowed = static_cast<std::size_t>(std::ranges::count_if(probe.access, &ExportAccess::allowed));
  StageResult& result = stage_of(probe, ProbeStage::access);
  result = {result.stage, StageOutcome::ok, result.round_trip,
            fmt::format("{} of {}", allowed, count_of(asked, "export"))};
  // An export that is for other clients is an error only if the caller has named it.
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

/// Changes failed stages that are not needed to `absent`: those of version 3 on a server with only version 4, and the
/// other way round. If a version did not answer in time, it may be offered, and nothing is changed.
void mark_unneeded_stages(NfsProbe& probe) {
  const bool only_v3 = probe.v3 && !probe.v4_unknown, only_v4 = probe.v4 && !probe.v3 && !probe.v3_unknown;
  for (StageResult& one : probe.stages) {
    const bool is_of_v3 = one.stage > ProbeStage::connect && one.stage <= ProbeStage::nfs3;
    if (one.outcome == StageOutcome::failed && only_v3 && one.stage == ProbeStage::nfs4)
      one = {one.stage, StageOutcome::absent, one.round_trip, one.detail + " (the server offers version 3 only)"};
    else if (one.outcome == StageOutcome::failed && only_v4 && is_of_v3)
      one = {one.stage, StageOutcome::absent, one.round_trip, one.detail + " (not needed for version 4)"};
    else if (one.outcome == StageOutcome::skipped && only_v4 && is_of_v3) // without a portmapper mountd is not asked
      one = {one.stage, StageOutcome::absent, {}, "not needed for version 4"};
  }
}

StageResult unresolved(const Error& error, std::chrono::microseconds took) {
  const auto fault = error.code == ErrorCode::not_found ? Fault::no_such_name
                     : error.code == ErrorCode::config  ? Fault::name_service
                     : error.code == ErrorCode::timeout ? Fault::timeout
                                                        : Fault::not_asked;
  auto result = failed_stage(ProbeStage::resolve, {fault, 0, took}, 0);
  if (fault == Fault::name_service || fault == Fault::not_asked)
    result.detail += error.message;
  return result;
}

} // namespace

StageResult failed_stage(ProbeStage stage, const ServerAnswer& answer, std::uint16_t port) {
  const bool unconnected = answer.fault == Fault::connection;
  const auto what = describe(answer);
  auto [cause, hint] = find_cause(stage, (unconnected ? "connection: " : "") + what);
  return {stage,
          StageOutcome::failed,
          answer.round_trip,
          (unconnected ? fmt::format("TCP port {}: ", port) : "") + what,
          std::move(cause),
          std::move(hint)};
}

const char* to_string(ProbeStage stage) {
  static constexpr std::array k_names{"resolve", "connect", "portmapper", "mountd", "nfs3",
                                      "nfs4",    "exports", "access",     "unknown"};
  return name_in(k_names, stage);
}

const char* to_string(StageOutcome outcome) {
  static constexpr std::array k_names{"ok", "absent", "failed", "skipped", "unknown"};
  return name_in(k_names, outcome);
}

const StageResult& NfsProbe::result_of(ProbeStage stage) const {
  static const StageResult k_skipped;
  const auto found = std::ranges::find(stages, stage, &StageResult::stage);
  return found == stages.end() ? k_skipped : *found;
}

const StageResult* NfsProbe::failing(int version) const {
  using enum ProbeStage;
  const auto find_first = [this](const auto& counts) {
    const auto found = std::ranges::find_if(stages, counts);
    return found == stages.end() ? nullptr : &*found;
  };
  const auto* for_v3 =
      find_first([](const StageResult& one) { return one.outcome != StageOutcome::ok && one.stage <= nfs3; });
  const auto* for_v4 = find_first([](const StageResult& one) {
    return one.outcome != StageOutcome::ok && (one.stage <= connect || one.stage == nfs4);
  });
  if (version == 3 || version == 4)
    return version == 3 ? for_v3 : for_v4;
  if (for_v3 == nullptr || for_v4 == nullptr)
    return nullptr;
  const auto* failed =
      find_first([](const StageResult& one) { return one.outcome == StageOutcome::failed && one.stage <= nfs4; });
  return failed != nullptr ? failed : for_v3;
}

NfsProbe probe_nfs_server(const NfsProbeRequest& request) {
  const auto begin = Clock::now();
  const auto addresses = resolve_in_child(request.host, request.timeout);
  const auto took = since(begin);
  auto probe = addresses ? merge(request, ask_each(request, *addresses, begin + request.timeout))
                         : convert(request, "", {}).probe;
  stage_of(probe, ProbeStage::resolve) =
      addresses ? StageResult{ProbeStage::resolve, StageOutcome::ok, took, join(*addresses, ", ")}
                : unresolved(addresses.error(), took);
  summarize_access(request, probe);
  mark_unneeded_stages(probe);
  probe.host = request.host;
  probe.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return probe;
}

} // namespace sharefs::sys

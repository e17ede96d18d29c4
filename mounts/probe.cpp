#include "mounts/probe.hpp"

#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/pending.hpp"
#include "mounts/profiles.hpp"
#include "sys/configured_mounts.hpp"
#include "sys/identity/identity.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace sharefs::mounts {

namespace {

constexpr std::chrono::milliseconds k_process_deadline{500};
/// How many servers are asked at the same time.
constexpr std::size_t k_most_threads = 16;

using RequestsByKey = std::map<std::string, sys::NfsProbeRequest>;

/// Returns the requests for the servers of `points`, by their keys.
RequestsByKey make_server_requests(const ProbeRequest& request, const std::vector<MountPoint>& points) {
  RequestsByKey requests;
  for (const auto& point : points)
    if (request.servers && !point.server.empty())
      requests
          .try_emplace(server_key(point), sys::NfsProbeRequest{.host = point.server,
                                                               .timeout = request.server_deadline,
                                                               .want_access = request.want_access,
                                                               .ports = ports_of(point)})
          .first->second.paths.push_back(point.path);
  for (auto& [key, one] : requests) {
    std::ranges::sort(one.paths);
    const auto repeated = std::ranges::unique(one.paths);
    one.paths.erase(repeated.begin(), repeated.end());
  }
  return requests;
}

/// Returns `wanted`, followed by the other visible NFS mounts, ordered by target.
std::vector<MountPoint> add_other_mounts(const sys::MountTable& table, const std::vector<MountPoint>& wanted) {
  std::set<std::string> named;
  for (const auto& one : wanted)
    named.insert(one.target);
  std::vector<MountPoint> all;
  all.reserve(wanted.size() + table.entries().size());
  all.assign(wanted.begin(), wanted.end());
  for (const auto& entry : table.entries())
    if (sys::is_nfs(entry) && !named.contains(entry.target) && table.at(entry.target) == &entry)
      all.push_back(point_without_options(entry));
  std::ranges::sort(all.begin() + static_cast<std::ptrdiff_t>(wanted.size()), all.end(), {}, &MountPoint::target);
  return all;
}

/// Asks the servers in parallel, and adds the answers by their keys.
void ask_servers(sys::System& system, const RequestsByKey& by_key,
                 std::map<std::string, sys::NfsProbe>& answers_by_key) {
  const std::vector<RequestsByKey::value_type> requests(by_key.begin(), by_key.end());
  std::vector<sys::NfsProbe> answers(requests.size());
  in_parallel(requests.size(), k_most_threads,
              [&](std::size_t index) { answers[index] = system.probe_nfs(requests[index].second); });
  for (std::size_t index = 0; index < requests.size(); ++index)
    answers_by_key.emplace(requests[index].first, std::move(answers[index]));
}

/// Returns the query for the mount point of `one`; nullopt if it must not be asked, because an automounter would mount
/// there.
std::optional<sys::EntryQuery> query_of(const sys::MountTable& table, const MountPoint& one, bool wanted) {
  const auto* mount = table.at(one.target);
  if (mount != nullptr)
    return sys::is_nfs(*mount) ? std::optional(sys::EntryQuery{.path = one.target, .space = true}) : std::nullopt;
  const auto* owner = table.owner_of(one.target);
  if (!wanted || (owner != nullptr && owner->fs_type == "autofs"))
    return std::nullopt;
  return sys::EntryQuery{.path = one.target, .list = true, .links = sys::Links::none};
}

/// Asks the mount points. Returns an answer for each of `all`; nullopt for those that are not asked.
std::vector<std::optional<sys::Entry>> ask_mount_points(sys::System& system, const ProbeRequest& request,
                                                        const sys::MountTable& table,
                                                        const std::vector<MountPoint>& all) {
  std::vector<std::optional<sys::Entry>> answers(all.size());
  std::vector<std::size_t> asked;
  sys::EntryRequest questions{{}, request.path_deadline};
  for (std::size_t index = 0; index < all.size(); ++index)
    if (auto query = request.skipped.contains(all[index].target)
                         ? std::nullopt
                         : query_of(table, all[index], request.targets && index < request.wanted.size())) {
      questions.queries.push_back(std::move(*query));
      asked.push_back(index);
    }
  auto entries = asked.empty() ? std::vector<sys::Entry>() : system.entries(questions);
  for (std::size_t number = 0; number < asked.size() && number < entries.size(); ++number)
    answers[asked[number]] = std::move(entries[number]);
  return answers;
}

/// Finds the directories of this host above the mounts through which only root gets. Directories on file systems that
/// may hang are not asked. A right of an ACL shows in the group's bits.
void find_closed_directories(sys::System& system, const sys::MountTable& table, std::chrono::milliseconds deadline,
                             std::vector<MountState>& states) {
  std::set<std::string> above;
  for (const auto& state : states)
    if (state.wanted && state.mounted())
      for (auto path = parent_path(state.point.target); path != "/"; path = parent_path(path))
        if (const auto* owner = table.owner_of(path); owner != nullptr && !sys::may_hang(owner->fs_type))
          above.insert(path);
  sys::EntryRequest request{{}, deadline};
  for (const auto& path : above)
    request.queries.push_back({.path = path, .links = sys::Links::none});
  constexpr std::uint32_t k_others_pass = 0011;
  for (const auto& one : above.empty() ? std::vector<sys::Entry>() : system.entries(request))
    if (one.kind == sys::EntryKind::directory && one.uid == 0 && (one.mode & k_others_pass) == 0)
      for (auto& state : states)
        if (state.wanted && state.mounted() && state.closed_above.empty() && is_under(state.point.target, one.path))
          state.closed_above = one.path;
}

/// Finds the disks of this host's own directories that are to be bound, and that are not mounted.
void find_absent_disks(sys::System& system, const sys::MountTable& table, std::vector<MountState>& states) {
  std::optional<std::vector<sys::ConfiguredMount>> configured;
  for (auto& state : states) {
    if (!state.point.here || state.health != Health::missing || state.point.is_in_place())
      continue;
    if (!configured)
      configured = sys::read_configured_mounts(system);
    if (const auto* const disk = sys::find_unmounted(*configured, table, state.point.path))
      state.absent_disk = *disk;
  }
}

/// True for a mount that root may not reach, because it lies in another NFS mount whose server may squash root: the
/// kernel makes such mounts by itself (crossmnt). The refusal says nothing about this mount.
bool is_out_of_reach(const MountState& state, const sys::MountTable& table) {
  const auto* above = table.owner_of(parent_path(state.point.target));
  return state.health == Health::denied && above != nullptr && sys::is_nfs(*above);
}

} // namespace

const sys::NfsProbe* Observation::server(const MountPoint& point) const {
  const auto found = servers.find(server_key(point));
  return found == servers.end() ? nullptr : &found->second;
}

Result<Observation> probe(sys::System& system, const ProbeRequest& request) {
  Observation seen;
  TRY_ASSIGN(seen.table, system.mounts());

  auto all = request.others ? add_other_mounts(seen.table, request.wanted) : request.wanted;
  auto others = make_server_requests(request, all);
  RequestsByKey wanted;
  for (const auto& point : request.wanted)
    wanted.insert(others.extract(server_key(point)));

  std::vector<std::optional<sys::Entry>> answers;
  in_parallel(3, 3, [&](std::size_t part) {
    if (part == 0)
      answers = ask_mount_points(system, request, seen.table, all);
    else if (part == 1)
      ask_servers(system, wanted, seen.servers);
    else if (std::ranges::any_of(seen.table.entries(), [](const auto& one) { return one.fs_type == "nfs4"; }))
      seen.takeovers = sys::read_takeovers(system.files());
  });
  std::set<std::string> unwell;
  for (std::size_t index = 0; index < all.size(); ++index)
    if (!answers[index] || answers[index]->error_number != 0)
      unwell.insert(server_key(all[index]));
  const auto pending = find_pending(system, k_process_deadline);
  std::erase_if(others, [&](const auto& one) { return !unwell.contains(one.first); });
  ask_servers(system, others, seen.servers);

  const auto identity = system.identity();
  std::map<std::string, std::size_t> mounts_at_target;
  for (const auto& entry : seen.table.entries())
    if (sys::is_nfs(entry))
      ++mounts_at_target[entry.target];
  seen.states.reserve(all.size());
  for (std::size_t index = 0; index < all.size(); ++index) {
    const bool is_wanted = index < request.wanted.size();
    const auto* server = seen.server(all[index]);
    auto point = std::move(all[index]);
    const auto own_options = point.options;
    point.here =
        point.here || sys::is_this_host(identity, point.server) ||
        (server != nullptr && sys::is_this_host(identity, server->address)); // the server's name resolves to this host
    if (is_wanted) {
      // Only an answer about the access shows whether NFS 4 has this path, too.
      const auto* mounted = seen.table.at(point.target);
      const bool may_need_3 = !request.want_access && mounted != nullptr && mounted->fs_type == "nfs";
      const bool asks_version = !version_of(point.options).empty();
      TRY_ASSIGN(point, decide(std::move(point), server));
      if (may_need_3 && !asks_version && !version_of(point.options).empty())
        point.options = override_settings(std::move(point.options), parse_options({"vers=3"}));
    }
    auto state = classify(std::move(point), is_wanted, seen.table, std::move(answers[index]), pending, server);
    if (!is_wanted && is_out_of_reach(state, seen.table))
      continue;
    if (is_wanted)
      state.own_options = own_options;
    if (state.mounted())
      state.stacked = mounts_at_target[state.point.target] - 1;
    if (const auto now = seen.takeovers.find(state.point.target); state.mounted() && now != seen.takeovers.end()) {
      const auto was = request.takeovers.find(state.point.target);
      if (sys::shows_second_host(now->second, was == request.takeovers.end() ? nullptr : &was->second))
        state.taken_over = now->second.times;
    }
    seen.states.push_back(std::move(state));
  }
  find_closed_directories(system, seen.table, request.path_deadline, seen.states);
  find_absent_disks(system, seen.table, seen.states);
  return seen;
}

void probe_again(sys::System& system, const std::vector<MountState*>& states, std::chrono::milliseconds deadline) {
  sys::EntryRequest questions{{}, deadline};
  for (const auto* state : states)
    questions.queries.push_back({.path = state->point.target, .space = true});
  auto answers = states.empty() ? std::vector<sys::Entry>() : system.entries(questions);
  for (std::size_t index = 0; index < answers.size() && index < states.size(); ++index)
    set_answer(*states[index], std::move(answers[index]));
}

namespace {

constexpr std::chrono::seconds k_pause{2}; ///< between two questions to a server that is not ready

/// Returns warnings for stages that fail although the server can be used: no exports, none for this host, no NFS 3.
Diagnoses find_lesser_failures(const sys::NfsProbe& probe) {
  Diagnoses found;
  for (const auto& stage : probe.stages)
    if (stage.outcome == sys::StageOutcome::failed)
      found.push_back({Severity::warning, "SF201", probe.host,
                       fmt::format("stage {}: {}{}", to_string(stage.stage), stage.detail,
                                   stage.cause.empty() ? "" : " (" + stage.cause + ")"),
                       stage.hint, ""});
  return found;
}

/// Returns ServerReply::diagnoses.
Diagnoses diagnose_server(const sys::NfsProbe& probe, const ServerQuestion& question) {
  if (question.request.paths.empty() && probe.usable())
    return find_lesser_failures(probe);
  MountPoint point;
  point.name = question.name;
  point.server = question.request.host;
  if (!question.request.paths.empty())
    point.path = question.request.paths.front();
  return preflight(point, &probe);
}

/// True if the path may be valid for NFS 4 only. With fsid=0 the paths of NFS 4 begin at that export, and mountd, which
/// answers for NFS 3, refuses them. If no listed export contains the path, this host cannot know more.
bool may_be_below_fsid0(const sys::NfsProbe& probe, const std::string& path) {
  return probe.usable(4) && !probe.exports.empty() &&
         std::ranges::none_of(probe.exports, [&](const auto& one) { return is_under(path, one.directory); });
}

bool is_ready(const sys::NfsProbe& probe, const Diagnoses& diagnoses, const ServerQuestion& question) {
  const auto& paths = question.request.paths;
  const bool is_refused = probe.result_of(sys::ProbeStage::access).outcome == sys::StageOutcome::failed;
  return !has_errors(diagnoses) && probe.usable() &&
         (paths.empty() || !is_refused || (question.until_ready && may_be_below_fsid0(probe, paths.front())));
}

} // namespace

ServerReply ask_server(sys::System& system, const ServerQuestion& question, const plan::Say& say) {
  std::string reported;
  for (;; std::this_thread::sleep_for(k_pause)) {
    ServerReply reply;
    {
      const auto progress = say.progress("asking " + question.request.host);
      reply.probe = system.probe_nfs(question.request);
    }
    reply.diagnoses = diagnose_server(reply.probe, question);
    reply.ready = is_ready(reply.probe, reply.diagnoses, question);
    if (reply.ready || !question.until_ready)
      return reply;
    if (const auto reason = reply.diagnoses.empty() ? "it is not ready" : reply.diagnoses.front().message;
        reason != reported) {
      say.message(fmt::format("waiting for {}: {}", question.name, reason));
      reported = reason;
    }
  }
}

} // namespace sharefs::mounts

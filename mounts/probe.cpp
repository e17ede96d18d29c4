#include "mounts/probe.hpp"

#include "mounts/pending.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <system_error>
#include <thread>

namespace sharefs::mounts {

namespace {

constexpr std::chrono::milliseconds k_process_deadline{500};
/// Servers asked at the same time.
constexpr std::size_t k_most_threads = 16;

std::vector<sys::NfsProbeRequest> server_requests(const ProbeRequest& request, const std::vector<MountPoint>& all) {
  std::map<std::string, std::set<std::string>> paths;
  for (const auto& one : all)
    if (!one.server.empty())
      paths[one.server].insert(one.path);
  std::vector<sys::NfsProbeRequest> requests;
  for (const auto& [host, its_paths] : paths)
    requests.push_back({host, {its_paths.begin(), its_paths.end()}, request.server_deadline, request.want_access});
  return requests;
}

/// The visible NFS mounts that no request names, by target.
std::vector<MountPoint> other_mounts(const sys::MountTable& table, const std::vector<MountPoint>& wanted) {
  std::set<std::string> named;
  for (const auto& one : wanted)
    named.insert(one.target);
  std::vector<MountPoint> others;
  for (const auto& entry : table.entries())
    if (sys::is_nfs(entry) && !entry.deleted && !named.contains(entry.target) && table.at(entry.target) == &entry)
      others.push_back(point_of(entry));
  std::ranges::sort(others, {}, &MountPoint::target);
  return others;
}

/// Asks the servers on threads of its own while the mount points are read. With no thread to be had it asks them in
/// answers().
class ServerProbes {
 public:
  ServerProbes(sys::System& system, std::vector<sys::NfsProbeRequest> requests)
      : m_system(system), m_requests(std::move(requests)), m_answers(m_requests.size()) {
    try {
      while (m_threads.size() < std::min(m_requests.size(), k_most_threads))
        m_threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // fewer threads take longer
    }
  }

  std::map<std::string, sys::NfsProbe> answers() {
    work();
    m_threads.clear();
    std::map<std::string, sys::NfsProbe> by_host;
    for (std::size_t index = 0; index < m_requests.size(); ++index)
      by_host.emplace(m_requests[index].host, std::move(m_answers[index]));
    return by_host;
  }

 private:
  void work() {
    for (auto index = m_next++; index < m_requests.size(); index = m_next++)
      m_answers[index] = m_system.probe_nfs(m_requests[index]);
  }

  sys::System& m_system;
  std::vector<sys::NfsProbeRequest> m_requests;
  std::vector<sys::NfsProbe> m_answers;
  std::atomic<std::size_t> m_next{0};
  std::vector<std::jthread> m_threads;
};

/// What is asked about the mount point of `one`, by the mount table: nothing where asking would mount.
std::optional<sys::EntryQuery> query_of(const sys::MountTable& table, const MountPoint& one, bool wanted) {
  const auto* mount = table.at(one.target);
  if (mount != nullptr)
    return sys::is_nfs(*mount) ? std::optional(sys::EntryQuery{.path = one.target, .space = true}) : std::nullopt;
  const auto* owner = table.owner_of(one.target);
  if (!wanted || (owner != nullptr && owner->fs_type == "autofs"))
    return std::nullopt;
  return sys::EntryQuery{.path = one.target, .list = true, .links = sys::Links::none};
}

} // namespace

const sys::NfsProbe* Observation::server(const std::string& host) const {
  const auto found = servers.find(host);
  return found == servers.end() ? nullptr : &found->second;
}

Result<Observation> probe(sys::System& system, const ProbeRequest& request) {
  Observation seen;
  auto table = system.mounts();
  if (!table)
    return fail(table.error());
  seen.table = std::move(*table);

  auto all = request.wanted;
  if (request.others)
    std::ranges::move(other_mounts(seen.table, request.wanted), std::back_inserter(all));
  ServerProbes servers(system, request.servers ? server_requests(request, all) : std::vector<sys::NfsProbeRequest>());

  sys::EntryRequest questions{{}, request.path_deadline};
  for (std::size_t index = 0; index < all.size(); ++index)
    if (auto query = query_of(seen.table, all[index], request.targets && index < request.wanted.size()))
      questions.queries.push_back(std::move(*query));
  std::map<std::string, sys::Entry> answers;
  for (auto& entry : questions.queries.empty() ? std::vector<sys::Entry>() : system.entries(questions))
    answers.emplace(entry.path, std::move(entry));
  const auto pending = find_pending(system, k_process_deadline);
  seen.servers = servers.answers();

  const auto addresses = system.identity().addresses;
  std::map<std::string, std::size_t> mounts_at_target;
  for (const auto& entry : seen.table.entries())
    if (sys::is_nfs(entry) && !entry.deleted)
      ++mounts_at_target[entry.target];
  for (std::size_t index = 0; index < all.size(); ++index) {
    const bool wanted = index < request.wanted.size();
    const auto* server = seen.server(all[index].server);
    auto point = all[index];
    if (wanted) {
      auto decided = decide(std::move(point), server, addresses);
      if (!decided)
        return fail(decided.error());
      point = std::move(*decided);
    }
    const auto found = answers.find(point.target);
    const auto* answer = found == answers.end() ? nullptr : &found->second;
    auto state = classify(point, wanted, seen.table, answer, pending, server);
    if (state.health == Health::missing && answer != nullptr)
      seen.targets.emplace(point.target, *answer);
    if (state.mounted())
      state.stacked = mounts_at_target[point.target] - 1;
    seen.states.push_back(std::move(state));
  }
  return seen;
}

void probe_again(sys::System& system, std::vector<MountState>& states, std::chrono::milliseconds deadline) {
  sys::EntryRequest questions{{}, deadline};
  std::vector<MountState*> asked;
  for (auto& state : states) {
    if (!state.mounted())
      continue;
    questions.queries.push_back({.path = state.point.target, .space = true});
    asked.push_back(&state);
  }
  const auto answers = asked.empty() ? std::vector<sys::Entry>() : system.entries(questions);
  for (std::size_t index = 0; index < answers.size() && index < asked.size(); ++index)
    take_answer(*asked[index], answers[index]);
}

} // namespace sharefs::mounts

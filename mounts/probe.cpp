#include "mounts/probe.hpp"

#include "base/path.hpp"
#include "mounts/pending.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <set>

namespace sharefs::mounts {

namespace {

constexpr std::chrono::milliseconds k_process_deadline{500};

std::vector<sys::NfsProbeRequest> server_requests(const ProbeRequest& request, const std::vector<MountRequest>& all) {
  std::map<std::string, std::set<std::string>> paths;
  for (const auto& one : all)
    if (!one.server.empty())
      paths[one.server].insert(one.path);
  std::vector<sys::NfsProbeRequest> requests;
  for (const auto& [host, its_paths] : paths)
    requests.push_back({host, {its_paths.begin(), its_paths.end()}, request.server_deadline, request.want_access});
  return requests;
}

/// The visible NFS mounts that no request names.
std::vector<MountRequest> other_mounts(const sys::MountTable& table, const std::vector<MountRequest>& wanted) {
  std::vector<MountRequest> others;
  for (const auto& entry : table.entries()) {
    if (!sys::is_nfs(entry) || entry.deleted || table.at(entry.target) != &entry)
      continue;
    const auto same_target = [&](const MountRequest& one) { return one.target == entry.target; };
    if (std::any_of(wanted.begin(), wanted.end(), same_target))
      continue;
    const auto point = point_of(entry);
    others.push_back(
        {.name = "", .server = point.server, .path = point.path, .target = point.target, .options = {}, .origin = ""});
  }
  std::sort(others.begin(), others.end(),
            [](const MountRequest& a, const MountRequest& b) { return a.target < b.target; });
  return others;
}

/// Mount points to probe: of the requests, and those that own the directory of a missing one.
std::vector<std::string> paths_to_probe(const sys::MountTable& table, const std::vector<MountRequest>& all) {
  std::set<std::string> paths;
  for (const auto& one : all) {
    const auto* owner = table.owner_of(one.target);
    if (owner != nullptr && sys::is_nfs(*owner))
      paths.insert(owner->target);
  }
  return {paths.begin(), paths.end()};
}

using PathProbes = std::map<std::string, sys::PathProbe>;

PathProbes probe_mount_points(sys::System& system, const std::vector<std::string>& paths,
                              std::chrono::milliseconds deadline) {
  std::vector<sys::PathProbeRequest> requests;
  requests.reserve(paths.size());
  for (const auto& path : paths)
    requests.push_back({path, deadline, false, std::nullopt});
  PathProbes probes;
  if (requests.empty())
    return probes;
  const auto results = system.probe_paths(requests);
  for (std::size_t index = 0; index < results.size() && index < paths.size(); ++index)
    probes.emplace(paths[index], results[index]);
  return probes;
}

TargetFacts look_at_target(sys::System& system, const sys::MountTable& table, const PathProbes& probes,
                           const std::string& target, std::chrono::milliseconds deadline) {
  TargetFacts facts;
  const auto* owner = table.owner_of(target);
  if (owner != nullptr && owner->fs_type == "autofs")
    return facts; // looking would mount
  if (owner != nullptr && probes.contains(owner->target)) {
    const auto health = probes.at(owner->target).health;
    if (health == sys::PathHealth::hung || health == sys::PathHealth::stale) {
      facts.dead_mount = owner->target;
      facts.problem = fmt::format("it lies on {}, which is {}", owner->target, sys::to_string(health));
      return facts;
    }
  }
  const auto answers = system.inspect({target_queries(target), deadline, std::nullopt});
  if (!answers) {
    facts.problem = answers.error().message;
    return facts;
  }
  return judge_target(*answers);
}

} // namespace

const sys::NfsProbe* Observation::server(const std::string& host) const {
  const auto found = servers.find(host);
  return found == servers.end() ? nullptr : &found->second;
}

std::map<std::string, sys::NfsProbe> probe_servers(sys::System& system,
                                                   const std::vector<sys::NfsProbeRequest>& requests) {
  std::vector<std::pair<std::string, std::future<sys::NfsProbe>>> running;
  running.reserve(requests.size());
  for (const auto& request : requests)
    running.emplace_back(request.host,
                         std::async(std::launch::async, [&system, request] { return system.probe_nfs(request); }));
  std::map<std::string, sys::NfsProbe> probes;
  for (auto& [host, future] : running)
    probes.emplace(host, future.get());
  return probes;
}

Result<Observation> probe(sys::System& system, const ProbeRequest& request) {
  Observation seen;
  auto table = system.mounts();
  if (!table)
    return fail(table.error());
  seen.table = std::move(*table);
  seen.addresses = system.identity().addresses;

  auto all = request.wanted;
  if (request.others) {
    const auto others = other_mounts(seen.table, request.wanted);
    all.insert(all.end(), others.begin(), others.end());
  }
  auto servers = std::async(std::launch::async, [&] {
    return request.servers ? probe_servers(system, server_requests(request, all))
                           : std::map<std::string, sys::NfsProbe>();
  });
  const auto probes = probe_mount_points(system, paths_to_probe(seen.table, all), request.path_deadline);
  const auto pending = find_pending(system, k_process_deadline);
  if (request.targets)
    for (const auto& one : request.wanted)
      if (seen.table.at(one.target) == nullptr)
        seen.targets.emplace(one.target,
                             look_at_target(system, seen.table, probes, one.target, request.path_deadline / 2));
  seen.servers = servers.get();

  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto& one = all[index];
    const bool wanted = index < request.wanted.size();
    const auto* server = seen.server(one.server);
    const auto facts = server == nullptr ? ServerFacts{} : server_facts(*server, seen.addresses);
    auto point = wanted ? decide(one, facts) : MountPoint{"", one.server, one.path, one.target, {}, ""};
    if (!point)
      return fail(point.error());
    const auto found = probes.find(one.target);
    seen.states.push_back(classify(*point, wanted, seen.table, found == probes.end() ? nullptr : &found->second,
                                   pending, server == nullptr ? "" : server->address));
  }
  return seen;
}

void probe_again(sys::System& system, std::vector<MountState>& states, std::chrono::milliseconds deadline) {
  std::vector<std::string> paths;
  for (const auto& state : states)
    if (state.mounted())
      paths.push_back(state.point.target);
  const auto probes = probe_mount_points(system, paths, deadline);
  for (auto& state : states) {
    const auto found = probes.find(state.point.target);
    if (found == probes.end())
      continue;
    state.probe = found->second;
    state.health = health_of(found->second);
    state.detail = found->second.detail;
  }
}

} // namespace sharefs::mounts

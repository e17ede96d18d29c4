#include "sys/recording_system.hpp"

#include "sys/json.hpp"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

namespace sharefs::sys {
namespace {

using nlohmann::json;

json error_or_null(const Result<void>& result) {
  return result ? json(nullptr) : json(result.error());
}

} // namespace

struct RecordingSystem::Record {
  json script = json::object();
  std::string mountinfo;                             ///< as last seen
  std::vector<std::pair<std::string, json>> changes; ///< run, exec, mount, unmount in order
  std::mutex mutex;

  void add_call(const char* kind, json entry) {
    const std::lock_guard lock(mutex);
    entry["times"] = 1; // the same question may get another answer the next time
    changes.emplace_back(kind, std::move(entry));
  }
  /// A new table is the work of the last call.
  void see(const MountTable& table) {
    const std::lock_guard lock(mutex);
    std::string text = table.format();
    if (!script.contains("mountinfo"))
      script["mountinfo"] = text;
    else if (text != mountinfo && !changes.empty())
      changes.back().second["mountinfo"] = text;
    mountinfo = std::move(text);
  }
};

RecordingSystem::RecordingSystem(System& inner)
    : System(inner.files()), m_inner(inner), m_record(std::make_unique<Record>()) {}

RecordingSystem::~RecordingSystem() = default;

Result<Completed> RecordingSystem::run(const Command& command) {
  auto result = m_inner.run(command);
  json entry = result ? json(*result) : json{{"error", result.error()}};
  entry["argv"] = command.argv;
  m_record->add_call("run", std::move(entry));
  return result;
}

Error RecordingSystem::exec(const Argv& argv, const std::vector<std::string>& environment) {
  Error error = m_inner.exec(argv, environment);
  m_record->add_call("exec", {{"argv", argv}, {"error", error}});
  return error;
}

Result<MountTable> RecordingSystem::mounts() {
  auto table = m_inner.mounts();
  if (table)
    m_record->see(*table);
  return table;
}

Result<void> RecordingSystem::mount(const MountCall& call) {
  auto result = m_inner.mount(call);
  m_record->add_call("mount", {{"source", call.source},
                               {"target", call.target},
                               {"fs_type", call.fs_type},
                               {"options", call.options},
                               {"error", error_or_null(result)}});
  return result;
}

Result<void> RecordingSystem::unmount(const UnmountCall& call) {
  auto result = m_inner.unmount(call);
  m_record->add_call(
      "unmount",
      {{"target", call.target}, {"force", call.force}, {"lazy", call.lazy}, {"error", error_or_null(result)}});
  return result;
}

NfsProbe RecordingSystem::probe_nfs(const NfsProbeRequest& request) {
  NfsProbe probe = m_inner.probe_nfs(request);
  const std::lock_guard lock(m_record->mutex);
  m_record->script["nfs"][request.host] = probe;
  return probe;
}

std::vector<PathProbe> RecordingSystem::probe_paths(const std::vector<PathProbeRequest>& requests) {
  std::vector<PathProbe> probes = m_inner.probe_paths(requests);
  const std::lock_guard lock(m_record->mutex);
  for (std::size_t i = 0; i < probes.size(); ++i)
    m_record->script["probe_path"][requests[i].path] = probes[i];
  return probes;
}

Result<std::vector<PathFact>> RecordingSystem::inspect(const InspectRequest& request) {
  auto facts = m_inner.inspect(request);
  const std::lock_guard lock(m_record->mutex);
  json& known = m_record->script["inspect"];
  for (std::size_t i = 0; i < request.queries.size(); ++i) {
    const PathQuery& query = request.queries[i];
    const std::string key = query.path + (query.follow ? " (followed)" : "");
    if (!facts) {
      // The error names the path that it is about; the others were not reached, or are known.
      if (facts.error().message.starts_with(query.path + ":") || request.queries.size() == 1)
        known[key] = {{"error", facts.error()}};
      continue;
    }
    json fact = (*facts)[i];
    // A later, shorter question must not forget what an earlier one saw.
    for (const char* part : {"entries", "content"})
      if (!fact.contains(part) && known.contains(key) && known[key].contains(part))
        fact[part] = known[key][part];
    known[key] = std::move(fact);
  }
  return facts;
}

Identity RecordingSystem::identity() {
  Identity identity = m_inner.identity();
  const std::lock_guard lock(m_record->mutex);
  m_record->script["identity"] = identity;
  return identity;
}

Result<User> RecordingSystem::user(std::string_view name) {
  auto user = m_inner.user(name);
  const std::lock_guard lock(m_record->mutex);
  json& users = m_record->script["users"];
  if (user && (users.is_null() || std::find(users.begin(), users.end(), json(*user)) == users.end()))
    users.push_back(*user);
  return user;
}

std::chrono::system_clock::time_point RecordingSystem::now() {
  const auto now = m_inner.now();
  const std::lock_guard lock(m_record->mutex);
  if (!m_record->script.contains("now"))
    m_record->script["now"] = format_time(now);
  return now;
}

std::string RecordingSystem::to_json() const {
  const std::lock_guard lock(m_record->mutex);
  json script = m_record->script;
  for (const auto& [kind, entry] : m_record->changes)
    script[kind].push_back(entry);
  return script.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace sharefs::sys

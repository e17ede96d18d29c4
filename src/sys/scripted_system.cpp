#include "sys/scripted_system.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "sys/json.hpp"
#include "sys/script.hpp"

#include <algorithm>

namespace sharefs::sys {

using nlohmann::json;

Result<std::unique_ptr<ScriptedSystem>> ScriptedSystem::from_json(const std::string& text, std::string root) {
  try {
    auto script = std::make_unique<Script>(json::parse(text, nullptr, true, /*ignore_comments=*/true));
    return std::unique_ptr<ScriptedSystem>(new ScriptedSystem(std::move(root), std::move(script)));
  } catch (const std::exception& exception) {
    return fail(ErrorCode::config, std::string("not a script of a machine: ") + exception.what());
  }
}

ScriptedSystem::ScriptedSystem(std::string root, std::unique_ptr<Script> script)
    : System(Files(std::move(root))), m_script(std::move(script)) {}

ScriptedSystem::~ScriptedSystem() = default;

Result<Completed> ScriptedSystem::run(const Command& command) {
  const std::string as = command.as ? " as " + command.as->name : "";
  return m_script->answer(files(), m_script->runs, {{"argv", command.argv}}, "run " + shell_join(command.argv) + as);
}

Error ScriptedSystem::exec(const Argv& argv, const std::vector<std::string>&) {
  const std::string call = "exec " + shell_join(argv);
  const auto answer = m_script->answer(files(), m_script->execs, {{"argv", argv}}, call);
  return answer ? not_in_script(call) : answer.error();
}

Result<MountTable> ScriptedSystem::mounts() {
  const std::lock_guard lock(m_script->mutex);
  return MountTable::parse(m_script->mountinfo);
}

Result<void> ScriptedSystem::mount(const MountCall& call) {
  const json question = {
      {"source", call.source}, {"target", call.target}, {"fs_type", call.fs_type}, {"options", call.options}};
  const std::string options = call.options.empty() ? "" : " -o " + call.options;
  const auto answer = m_script->answer(files(), m_script->mounts, question,
                                       "mount -t " + call.fs_type + options + " " + call.source + " " + call.target);
  if (!answer)
    return fail(answer.error());
  return {};
}

Result<void> ScriptedSystem::unmount(const UnmountCall& call) {
  const json question = {{"target", call.target}, {"force", call.force}, {"lazy", call.lazy}};
  const auto answer = m_script->answer(files(), m_script->unmounts, question,
                                       std::string("umount") + (call.force ? " -f" : "") + (call.lazy ? " -l" : "") +
                                           " " + call.target);
  if (!answer)
    return fail(answer.error());
  return {};
}

NfsProbe ScriptedSystem::probe_nfs(const NfsProbeRequest& request) {
  if (const auto known = m_script->nfs.find(request.host); known != m_script->nfs.end()) {
    NfsProbe probe = known->second;
    probe.host = request.host;
    return probe;
  }
  NfsProbe probe;
  probe.host = request.host;
  probe.stages.push_back(
      {ProbeStage::resolve, StageOutcome::failed, {}, not_in_script("probe " + request.host).message, "", ""});
  return probe;
}

std::vector<PathProbe> ScriptedSystem::probe_paths(const std::vector<PathProbeRequest>& requests) {
  std::vector<PathProbe> results;
  for (const PathProbeRequest& request : requests) {
    const auto known = m_script->probes.find(request.path);
    PathProbe probe;
    if (known != m_script->probes.end())
      probe = known->second;
    else
      probe.detail = not_in_script("probe " + request.path).message;
    results.push_back(std::move(probe));
  }
  return results;
}

Result<std::vector<PathFact>> ScriptedSystem::inspect(const InspectRequest& request) {
  std::vector<PathFact> facts;
  for (const PathQuery& query : request.queries) {
    auto fact = m_script->look_at(files(), query);
    if (!fact)
      return fail(fact.error());
    facts.push_back(std::move(*fact));
  }
  return facts;
}

Identity ScriptedSystem::identity() {
  return m_script->identity;
}

Result<User> ScriptedSystem::user(std::string_view name) {
  std::vector<std::string> names;
  for (const User& user : m_script->users) {
    if (user.name == name)
      return user;
    names.push_back(user.name);
  }
  return fail(ErrorCode::not_found, "there is no user `" + std::string(name) + "`", did_you_mean_hint(name, names));
}

std::chrono::system_clock::time_point ScriptedSystem::now() {
  return m_script->now;
}

const std::vector<std::string>& ScriptedSystem::calls() const {
  return m_script->calls;
}

} // namespace sharefs::sys

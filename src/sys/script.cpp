#include "sys/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/resolve.hpp"
#include "sys/json.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace sharefs::sys {
namespace {

using nlohmann::json;

constexpr int k_script_max_links = 40;
constexpr const char* k_followed_mark = " (followed)"; ///< of a recording: stat of this path, not lstat

std::optional<Error> error_of(const json& entry) {
  if (!entry.contains("error") || entry.at("error").is_null())
    return std::nullopt;
  return entry.at("error").get<Error>();
}

/// A key that nobody reads is a typing mistake, and the test would not test what it says.
void check_keys(const json& object, std::string_view what, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw std::invalid_argument("unknown key `" + key + "` in " + std::string(what));
}

std::vector<ScriptedAnswer> read_answers(const json& script, const char* kind,
                                         const std::vector<std::string>& question) {
  std::vector<ScriptedAnswer> answers;
  if (!script.contains(kind))
    return answers;
  std::vector<std::string> known{"exit_code", "out",   "err",   "timed_out", "unreaped",
                                 "took_ms",   "error", "times", "mountinfo", "files"};
  known.insert(known.end(), question.begin(), question.end());
  for (const json& entry : script.at(kind)) {
    check_keys(entry, kind, known);
    ScriptedAnswer answer;
    for (const std::string& key : question)
      if (entry.contains(key))
        answer.question[key] = entry.at(key);
    answer.completed = entry.get<Completed>();
    answer.error = error_of(entry);
    if (entry.contains("mountinfo"))
      answer.mountinfo = entry.at("mountinfo").get<std::string>();
    answer.files = entry.value("files", std::map<std::string, std::string>{});
    answer.times = entry.value("times", 0);
    answers.push_back(std::move(answer));
  }
  return answers;
}

/// The first entry whose keys all have the values of `call`, and which is not used up.
ScriptedAnswer* find(std::vector<ScriptedAnswer>& answers, const json& call) {
  for (ScriptedAnswer& answer : answers) {
    if (answer.times != 0 && answer.used >= answer.times)
      continue;
    const auto& wanted = answer.question;
    bool same = true;
    for (const auto& [key, value] : wanted.items())
      same = same && call.at(key) == value;
    if (!same)
      continue;
    ++answer.used;
    return &answer;
  }
  return nullptr;
}

Result<void> write_with_parents(const Files& files, const std::string& path, const std::string& content) {
  if (auto made = files.make_directories(parent_path(path)); !made)
    return made;
  return files.write(path, content);
}

/// A file under the root of a test, as the child of inspect_paths would see it.
PathFact real_fact(const Files& files, const std::string& path, const PathQuery& query) {
  PathFact fact;
  const Seen seen = look_at_local(files, path);
  fact.kind = seen.kind;
  fact.link_target = seen.link_target;
  const auto info = files.info(path);
  if (!info || !*info) {
    fact.error_number = fact.kind == PathKind::missing ? ENOENT : EIO;
    return fact;
  }
  fact.mode = (*info)->mode;
  fact.uid = (*info)->uid;
  fact.gid = (*info)->gid;
  fact.size = (*info)->size;
  if (fact.kind == PathKind::directory && query.list)
    fact.entries = files.list(path).value_or(fact.entries);
  if (fact.kind == PathKind::file && query.read_bytes > 0)
    fact.content = files.read(path).value_or(std::string());
  return fact;
}

} // namespace

ScriptedSystem::Script::Script(const json& script) {
  if (!script.is_object())
    throw std::invalid_argument("it is no JSON object");
  check_keys(
      script, "the script",
      {"identity", "now", "mountinfo", "users", "run", "exec", "mount", "unmount", "nfs", "probe_path", "inspect"});
  identity = script.value("identity", json::object()).get<Identity>();
  now = parse_time(script.value("now", "2026-01-01T00:00:00Z"));
  mountinfo = script.value("mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
  users = script.value("users", std::vector<User>{});
  runs = read_answers(script, "run", {"argv"});
  execs = read_answers(script, "exec", {"argv"});
  mounts = read_answers(script, "mount", {"source", "target", "fs_type", "options"});
  unmounts = read_answers(script, "unmount", {"target", "force", "lazy"});
  nfs = script.value("nfs", std::map<std::string, NfsProbe>{});
  probes = script.value("probe_path", std::map<std::string, PathProbe>{});
  const json inspected = script.value("inspect", json::object());
  for (const auto& [path, entry] : inspected.items()) {
    facts[path].error = error_of(entry);
    if (!facts[path].error)
      facts[path].fact = entry.get<PathFact>();
  }
}

Result<Completed> ScriptedSystem::Script::answer(const Files& files, std::vector<ScriptedAnswer>& answers,
                                                 const json& call, const std::string& what) {
  const std::lock_guard lock(mutex);
  calls.push_back(what);
  const ScriptedAnswer* found = find(answers, call);
  if (found == nullptr)
    return fail(not_in_script(what));
  if (found->mountinfo)
    mountinfo = *found->mountinfo;
  for (const auto& [path, content] : found->files)
    if (const auto written = write_with_parents(files, path, content); !written)
      return fail(written.error());
  if (found->error)
    return fail(*found->error);
  return found->completed;
}

Result<PathFact> ScriptedSystem::Script::look_at(const Files& files, const PathQuery& query) const {
  std::string path = query.path;
  for (int links = 0; links <= k_script_max_links; ++links) {
    auto known = query.follow ? facts.find(path + k_followed_mark) : facts.end();
    if (known == facts.end())
      known = facts.find(path);
    if (known == facts.end() && files.is_live())
      return fail(not_in_script("inspect " + path));
    if (known != facts.end() && known->second.error)
      return fail(*known->second.error);
    PathFact fact = known != facts.end() ? known->second.fact : real_fact(files, path, query);
    if (query.follow && fact.kind == PathKind::symlink) {
      path = normalize_path(fact.link_target, parent_path(path));
      continue;
    }
    fact.path = query.path;
    if (!query.list)
      fact.entries.clear();
    fact.content.resize(std::min(fact.content.size(), query.read_bytes));
    return fact;
  }
  PathFact fact;
  fact.path = query.path;
  fact.error_number = ELOOP;
  return fact;
}

Error not_in_script(const std::string& call) {
  return {ErrorCode::unsupported, "the script of this machine does not know `" + call + "`", {}, {}};
}

} // namespace sharefs::sys

#include "support/scripted_system.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::test {

using nlohmann::json;

namespace {

/// Whole programs are among the words of a child; their names are enough to know them.
Argv shortened(Argv argv) {
  constexpr std::size_t k_most = 200;
  for (std::string& word : argv)
    if (word.size() > k_most)
      word = word.substr(0, word.find('\n')).substr(0, 60) + "...";
  return argv;
}

constexpr int k_most_links = 40;
/// Of every file system under a root: the disk that the test runs on is never the same.
constexpr sys::Space k_space{std::chrono::microseconds(600), 1ULL << 40U, 1ULL << 39U, 1U << 20U, 1U << 19U};

/// `unsupported`: a test never falls through to the host.
Error not_in_script(const std::string& call) {
  return {ErrorCode::unsupported, "the script of this machine does not know `" + call + "`", {}, {}};
}

/// The first answer whose question fits `call`, and which is not used up.
Answer* find(std::vector<Answer>& answers, const json& call) {
  for (Answer& answer : answers) {
    if (answer.times != 0 && answer.used >= answer.times)
      continue;
    bool same = true;
    for (const auto& [key, value] : answer.question.items())
      same = same && call.at(key) == value;
    if (!same)
      continue;
    ++answer.used;
    return &answer;
  }
  return nullptr;
}

/// With what a script need not say: the paths, and where they lie.
sys::Entry completed(sys::Entry entry, const std::string& path, const sys::MountTable& table) {
  entry.path = path;
  if (entry.resolved.empty())
    entry.resolved = path;
  if (entry.ancestor.empty())
    entry.ancestor = entry.kind == sys::EntryKind::directory ? entry.resolved : parent_path(entry.resolved);
  if (const auto* owner = table.owner_of(entry.resolved); owner != nullptr && entry.fs_type.empty()) {
    entry.mount = owner->target;
    entry.fs_type = owner->fs_type;
    entry.shared = sys::is_shared(*owner);
    entry.lock_scope = sys::lock_scope(*owner);
  }
  return entry;
}

Result<void> without_value(const Result<sys::Completed>& completed) {
  if (!completed)
    return fail(completed.error());
  return {};
}

} // namespace

Result<std::unique_ptr<ScriptedSystem>> ScriptedSystem::from_json(const std::string& text, std::string root) {
  auto machine = Machine::from_json(text);
  if (!machine)
    return fail(machine.error());
  return std::make_unique<ScriptedSystem>(std::move(root), std::move(*machine));
}

void ScriptedSystem::note(const std::string& call) {
  const std::lock_guard lock(m_mutex);
  m_calls.push_back(call);
}

/// Plays the first answer that fits; `own_table` is set if that brings a mount table.
Result<sys::Completed> ScriptedSystem::answer(std::vector<Answer>& answers, const json& call, const std::string& what,
                                              bool& own_table) {
  const std::lock_guard lock(m_mutex);
  const Answer* found = find(answers, call);
  if (found == nullptr)
    return fail(not_in_script(what));
  own_table = found->mounts.has_value();
  if (found->mounts)
    machine.mounts = *found->mounts;
  for (const auto& [path, content] : found->files) {
    if (auto made = files().make_directories(parent_path(path)); !made)
      return fail(made.error());
    const auto before = files().read_if_exists(path);
    if (auto written = files().write_if(path, before.value_or(std::nullopt), content); !written)
      return fail(written.error());
  }
  if (found->error)
    return fail(*found->error);
  return found->completed;
}

Result<sys::Completed> ScriptedSystem::run(const sys::Command& command) {
  const std::string what = "run " + shell_join(shortened(command.argv)) +
                           (command.as ? " as " + command.as->name : "") + (command.isolation ? " in namespaces" : "");
  note(what);
  bool own_table = false;
  auto answered =
      answer(machine.run, {{"argv", command.argv}, {"isolated", command.isolation != nullptr}}, what, own_table);
  if (!answered && answered.error().code == ErrorCode::unsupported && machine.on_run)
    return machine.on_run(command);
  return answered;
}

Error ScriptedSystem::exec(const Argv& argv, const std::vector<std::string>& environment) {
  const std::string what = "exec " + shell_join(argv);
  note(what);
  bool own_table = false;
  const auto answered = answer(machine.exec, {{"argv", argv}}, what, own_table);
  if (!answered && answered.error().code != ErrorCode::unsupported)
    return answered.error();
  if (machine.on_exec)
    machine.on_exec(argv, environment);
  return not_in_script(what);
}

Result<sys::MountTable> ScriptedSystem::mounts() {
  const std::lock_guard lock(m_mutex);
  return machine.mounts;
}

Result<void> ScriptedSystem::mount(const sys::MountCall& call) {
  const std::string options = call.options.empty() ? "" : " -o " + call.options;
  const std::string what = "mount -t " + call.fs_type + options + " " + call.source + " " + call.target;
  note(what);
  if (machine.on_mount)
    return machine.on_mount(call);
  bool own_table = false;
  const auto answered =
      answer(machine.mount,
             {{"source", call.source}, {"target", call.target}, {"fs_type", call.fs_type}, {"options", call.options}},
             what, own_table);
  const std::lock_guard lock(m_mutex);
  if (answered && !own_table)
    machine.add_mount(call.source, call.target, call.fs_type, call.options);
  if (const auto found = machine.entries.find(call.target);
      answered && found != machine.entries.end() && found->second.kind == sys::EntryKind::unknown)
    machine.entries.erase(found); // a new mount answers
  return without_value(answered);
}

Result<void> ScriptedSystem::unmount(const sys::UnmountCall& call) {
  const std::string what =
      std::string("umount") + (call.force ? " -f" : "") + (call.lazy ? " -l" : "") + " " + call.target;
  note(what);
  if (machine.on_unmount)
    return machine.on_unmount(call);
  bool own_table = false;
  const auto answered =
      answer(machine.unmount, {{"target", call.target}, {"force", call.force}, {"lazy", call.lazy}}, what, own_table);
  const std::lock_guard lock(m_mutex);
  if (answered && !own_table)
    machine.remove_mount(call.target);
  return without_value(answered);
}

sys::NfsProbe ScriptedSystem::probe_nfs(const sys::NfsProbeRequest& request) {
  if (machine.on_probe_nfs)
    return machine.on_probe_nfs(request);
  sys::NfsProbe probe;
  if (const auto known = machine.nfs.find(request.host); known != machine.nfs.end())
    probe = known->second;
  else
    probe.stages.push_back({sys::ProbeStage::resolve,
                            sys::StageOutcome::failed,
                            {},
                            not_in_script("probe " + request.host).message,
                            "",
                            ""});
  probe.host = request.host;
  return probe;
}

// ---- what lies at a path ----

/// The entry of the machine that answers `query`, links followed where that is asked for; nullopt: a file under the
/// root, or nothing.
std::optional<sys::Entry> ScriptedSystem::known(const sys::EntryQuery& query) const {
  std::string path = query.path;
  for (int links = 0; links <= k_most_links; ++links) {
    for (const auto& [above, entry] : machine.entries)
      if (entry.kind == sys::EntryKind::unknown && entry.error_number == ETIMEDOUT && is_under(path, above)) {
        sys::Entry hung = entry;
        hung.resolved = hung.ancestor = path;
        return hung;
      }
    const auto found = machine.entries.find(path);
    if (found == machine.entries.end())
      return std::nullopt;
    if (query.follow && found->second.kind == sys::EntryKind::symlink) {
      path = normalize_path(found->second.link_target, parent_path(path));
      continue;
    }
    sys::Entry entry = found->second;
    if (entry.resolved.empty())
      entry.resolved = path;
    if (!query.list)
      entry.names.clear();
    if (!query.space)
      entry.space.reset();
    else if (!entry.space && entry.exists())
      entry.space.emplace();
    entry.content.resize(std::min(entry.content.size(), query.read_bytes));
    return entry;
  }
  sys::Entry endless;
  endless.error_number = ELOOP;
  endless.resolved = path;
  return endless;
}

std::vector<sys::Entry> ScriptedSystem::entries(const sys::EntryRequest& request) {
  const auto table = mounts();
  std::vector<sys::Entry> results;
  // Whoever asks: the users of this machine are not those of the host.
  sys::EntryRequest real{{}, request.deadline, std::nullopt};
  std::vector<std::size_t> real_places;
  for (const sys::EntryQuery& query : request.queries) {
    {
      const std::lock_guard lock(m_mutex);
      m_asked.push_back(query.path + (request.as ? " as " + request.as->name : ""));
    }
    std::optional<sys::Entry> entry;
    if (machine.on_entry)
      entry = machine.on_entry(query, request.as);
    if (!entry)
      entry = known(query);
    if (!entry && !files().is_live()) {
      real.queries.push_back(query);
      real_places.push_back(results.size());
    } else if (!entry) {
      entry.emplace();
      entry->error_number = ENOSYS;
      entry->detail = not_in_script("entry " + query.path).message;
    }
    results.push_back(entry ? completed(std::move(*entry), query.path, *table) : sys::Entry());
  }
  auto found = read_entries(files(), *table, real);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].space)
      found[i].space = k_space;
    results[real_places[i]] = std::move(found[i]);
  }
  return results;
}

Result<int> ScriptedSystem::run_worker(const sys::WorkerRequest& request) {
  note("as " + request.user.name + " sharefs " + shell_join(request.words));
  return 0;
}

Result<sys::User> ScriptedSystem::user(std::string_view name) {
  std::vector<std::string> names;
  for (const sys::User& user : machine.users) {
    if (user.name == name || std::to_string(user.uid) == name)
      return user;
    names.push_back(user.name);
  }
  return fail(ErrorCode::not_found, "there is no user `" + std::string(name) + "`", did_you_mean_hint(name, names));
}

} // namespace sharefs::test

#include "conda/running.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/noted_processes.hpp"
#include "conda/staged.hpp"
#include "sys/find_processes.hpp"

#include <fmt/format.h>
#include <tuple>

namespace sharefs::conda {

namespace {

constexpr std::chrono::seconds k_scripts_deadline{60};
constexpr std::size_t k_largest_environment = 8U << 20U;
/// A restarted server answers after its grace time (90 s, nfsd(7)); a program on its share would wait for it, too.
constexpr std::chrono::seconds k_longest_wait{120};

/// Returns the names of this host's notes whose processes have ended. The user waits for it, so its work is limited.
std::vector<std::string> find_ended(sys::System& system, const std::string& directory) {
  constexpr std::size_t k_at_once = 32, k_most_checked = 1000;
  const auto host = system.identity().process_host();
  NotedProcesses processes(system);
  std::vector<std::string> ended;
  std::size_t checked = 0;
  for (const auto& name : system.entry({.path = directory, .follow = true, .list = true}).names)
    if (const auto use = parse_use(name); use && use->host == host && ended.size() < k_at_once &&
                                          ++checked <= k_most_checked && processes.is_running(*use) == false)
      ended.push_back(name);
  return ended;
}

/// Leaves the note if probe_running() could not, and deletes notes of this host whose processes have ended, which no
/// other host knows. On a share only one process in sixteen deletes notes: 64 processes of one job start at once, and
/// each would list a directory that the others have just changed. Errors are ignored, because the command works without
/// the note.
void keep_notes(sys::System& system, const sys::Note& note, const RunningPlace& place) {
  constexpr int k_one_in = 16;
  const auto& generation = *place.generation;
  const auto& files = system.files();
  const auto directory = join_path(generations_path(generation.store, generation.name), note.directory);
  const bool lists = !place.noted || !place.shared || system.identity().pid % k_one_in == 0;
  const auto ended = lists ? find_ended(system, directory) : std::vector<std::string>{};
  if (place.noted && ended.empty())
    return;
  const auto ours = note.name + "." + generation_name(generation.number);
  auto noted = files.replace_notes(directory, ours, ended);
  if (!noted && noted.error().code == ErrorCode::not_found) {
    const auto above = system.entry({.path = parent_path(directory), .follow = true});
    if (files.make_directories(directory, uses_mode(above.mode)))
      std::ignore = files.replace_notes(directory, ours, ended);
  }
}

std::optional<StagedCopy> find_copy(sys::System& system, const StageOf& stage_of, const GenerationPath& generation) {
  return find_staged(system, stage_of(generation.name), static_cast<unsigned>(system.identity().uid), generation);
}

/// Returns the copy on this host's own disk, with a note of the use beside it; nullopt if there is none, or if no note
/// could be left.
std::optional<RunningPlace> use_staged(sys::System& system, const GenerationPath& generation, const StageOf& stage_of,
                                       const sys::Note& note) {
  const auto copy = find_copy(system, stage_of, generation);
  if (!copy || copy->is_on_share())
    return std::nullopt;
  auto place = probe_running(system, copy->tree.path, staged_use_note(note, generation.store));
  // `stage` removes the mark of a copy before it checked for notes and deletes the copy, so the mark is read again
  // here.
  if (!place || !place->noted || !find_copy(system, stage_of, generation))
    return std::nullopt;
  const auto uses = staged_uses(parent_path(copy->tree.path));
  if (const auto ended = find_ended(system, uses); !ended.empty())
    std::ignore = system.files().replace_notes(uses, note.name + "." + generation_name(generation.number), ended);
  place->generation = generation;
  return std::move(*place);
}

} // namespace

Result<RunningPlace> find_running(sys::System& system, const std::string& path, const StageOf& stage_of,
                                  const plan::Say& say) {
  const auto self = system.identity();
  std::optional<sys::Note> note;
  std::string present = path; // the target of the path now, so that the share is asked for it only once
  if (const auto start = sys::process_start(system.files(), self.pid)) {
    note = use_note(self.process_host(), self.pid, *start);
    const auto there = system.entry({.path = path, .follow = true, .fresh = true, .automount = true});
    if (const auto generation = in_generation(there.resolved); generation && generation->rest.empty()) {
      if (auto staged = use_staged(system, *generation, stage_of, *note))
        return std::move(*staged);
      present = there.resolved;
    }
  }
  // The note is left before anything that takes long, because `gc` keeps a generation with a note.
  auto place = probe_running(system, present, note);
  if (!place && place.error().code != ErrorCode::timeout && present != path) // another host may just have deleted it
    place = probe_running(system, path, note);
  if (!place && place.error().code == ErrorCode::timeout) {
    say.message(fmt::format("sharefs: {}; waiting for up to {} s more", place.error().message, k_longest_wait.count()));
    place = probe_running(system, path, note, k_longest_wait);
  }
  if (!place || !place->generation)
    return place;
  if (note)
    keep_notes(system, *note, *place);
  const auto copy = find_copy(system, stage_of, *place->generation);
  if (auto on_share = copy ? probe_running(system, copy->tree.path) : place; on_share && copy) {
    on_share->generation = place->generation;
    return on_share;
  }
  return place;
}

Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said) {
  if (place.scripts.empty())
    return environment;
  sys::Command command;
  // The output of the scripts goes to standard error, so that standard output has only the environment.
  command.argv = {"bash",
                  "--noprofile",
                  "--norc",
                  "-c",
                  "exec 3>&1 >&2; for script; do . \"$script\"; done; exec /usr/bin/env -0 >&3 3>&-",
                  "sharefs"};
  command.argv.insert(command.argv.end(), place.scripts.begin(), place.scripts.end());
  command.deadline = k_scripts_deadline;
  command.output_limit = k_largest_environment;
  for (const auto& entry : environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      command.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  TRY_ASSIGN(const auto done, system.run(command));
  said = done.err;
  const auto where = join_path(place.prefix, "etc/conda/activate.d");
  if (done.timed_out)
    return fail(ErrorCode::timeout,
                fmt::format("{}: the scripts have not ended after {} s", where, k_scripts_deadline.count()));
  if (!done.ok() || done.out.empty())
    return fail(ErrorCode::failed,
                fmt::format("{}: a script has ended the shell (exit code {})", where, done.exit_code));
  return apply_script_output(std::move(environment), done.out);
}

} // namespace sharefs::conda

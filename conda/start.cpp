#include "conda/start.hpp"

#include "base/path.hpp"
#include "conda/staged.hpp"
#include "sys/leases/lease.hpp"

#include <fmt/format.h>
#include <tuple>

namespace sharefs::conda {

namespace {

constexpr std::chrono::seconds k_scripts_deadline{60};
constexpr std::size_t k_largest_environment = 8U << 20U;
/// A server that is started anew answers after its grace time (90 s, nfsd(7)); the program itself would wait for it.
constexpr std::chrono::seconds k_longest_wait{120};

/// Names of notes of this host whose processes have ended. Whoever starts a command waits for this.
std::vector<std::string> ended_of(sys::System& system, const std::string& host, const std::vector<std::string>& uses) {
  constexpr std::size_t k_at_once = 8, k_most_looks = 1000;
  std::vector<std::string> ended;
  std::size_t looks = 0;
  for (const auto& name : uses)
    if (const auto use = parse_use(name);
        use && use->host == host && ended.size() < k_at_once && ++looks <= k_most_looks && runs(system, *use) == false)
      ended.push_back(name);
  return ended;
}

/// Leaves the note where the look has found no place for it, and takes away notes of this host whose processes have
/// ended: no other host knows that. A command does not depend on the list of the users of its generation, so errors do
/// not matter.
void keep_notes(sys::System& system, const std::string& host, const sys::Note& note, const RunningPlace& place) {
  const auto& generation = *place.generation;
  const auto& files = system.files();
  const auto ended = ended_of(system, host, place.uses);
  if (place.noted && ended.empty())
    return;
  const auto directory = join_path(generations_path(generation.store, generation.name), "uses");
  const auto ours = note.name + "." + generation_name(generation.number);
  auto noted = files.exchange_notes(directory, ours, ended);
  if (!noted && noted.error().code == ErrorCode::not_found) {
    const auto above = system.entry({.path = parent_path(directory), .follow = true});
    if (files.make_directories(directory, uses_mode(above.mode)))
      std::ignore = files.exchange_notes(directory, ours, ended);
  }
}

} // namespace

Result<RunningPlace> find_running(sys::System& system, const std::string& path, const plan::Say& say) {
  const auto self = system.identity();
  std::optional<sys::Note> note;
  if (const auto start = sys::process_start(system, self.pid))
    note = use_note(self.hostname, self.pid, *start);
  // Noted before anything takes its time: `gc` and `stage` leave what is in use.
  auto place = probe_running(system, path, note);
  if (!place && place.error().code == ErrorCode::timeout) {
    say.message(fmt::format("sharefs: {}; waiting for up to {} s more", place.error().message, k_longest_wait.count()));
    place = probe_running(system, path, note, k_longest_wait);
  }
  if (place && place->generation && note)
    keep_notes(system, self.hostname, *note, *place);
  return place;
}

void take_staged(sys::System& system, const std::string& stage, RunningPlace& place) {
  const auto path = find_staged(system, stage, static_cast<unsigned>(system.identity().uid), *place.generation);
  if (!path)
    return;
  auto staged = probe_running(system, *path); // it may have gone meanwhile
  if (!staged)
    return;
  staged->generation = std::move(place.generation);
  place = std::move(*staged);
}

Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said) {
  if (place.scripts.empty())
    return environment;
  sys::Command command;
  command.argv = scripts_command(place.scripts);
  command.deadline = k_scripts_deadline;
  command.output_limit = k_largest_environment;
  for (const auto& entry : environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      command.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  const auto done = system.run(command);
  if (!done)
    return fail(done.error());
  said = done->err;
  const auto where = join_path(place.prefix, "etc/conda/activate.d");
  if (done->timed_out)
    return fail(ErrorCode::timeout,
                fmt::format("{}: the scripts have not ended after {} s", where, k_scripts_deadline.count()));
  if (!done->ok() || done->out.empty())
    return fail(ErrorCode::failed,
                fmt::format("{}: a script has ended the shell (exit code {})", where, done->exit_code));
  return after_scripts(std::move(environment), done->out);
}

} // namespace sharefs::conda

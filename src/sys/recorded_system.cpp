#include "sys/recorded_system.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

namespace sharefs::sys {
namespace {

Error no_change() {
  return {ErrorCode::unsupported, "a recording is only looked at", {}, {}};
}

std::string name_of(const std::optional<User>& user) {
  return user ? user->name : "";
}

} // namespace

RecordedSystem::RecordedSystem(System* machine, std::shared_ptr<Recording> recording)
    : System(machine == nullptr ? Files().recorded_by(recording) : machine->files().recorded_by(recording)),
      m_machine(machine), m_recording(std::move(recording)) {}

Result<Completed> RecordedSystem::run(const Command& command) {
  return m_recording->ask("run", std::tuple(command.argv, name_of(command.as), command.input),
                          [&] { return m_machine->run(command); });
}

Error RecordedSystem::exec(const Argv&, const std::vector<std::string>&) {
  return no_change();
}

Result<MountTable> RecordedSystem::mounts() {
  auto entries = m_recording->ask("mounts", std::string(), [&]() -> Result<std::vector<MountEntry>> {
    return m_machine->mounts().map([](const MountTable& table) { return table.entries(); });
  });
  if (!entries)
    return fail(entries.error());
  if (std::ranges::any_of(*entries, [](const MountEntry& one) { return !one.target.starts_with('/'); }))
    return fail(ErrorCode::config, "the recording has a mount at no path");
  return MountTable(std::move(*entries));
}

Result<void> RecordedSystem::mount(const MountCall&) {
  return fail(no_change());
}

Result<void> RecordedSystem::unmount(const UnmountCall&) {
  return fail(no_change());
}

NfsProbe RecordedSystem::probe_nfs(const NfsProbeRequest& request) {
  auto probe = m_recording->ask("server", std::tuple(request.host, request.paths, request.want_access),
                                [&]() -> Result<NfsProbe> { return m_machine->probe_nfs(request); });
  if (probe)
    return std::move(*probe);
  NfsProbe none;
  none.host = request.host;
  none.stages.push_back({ProbeStage::resolve, StageOutcome::failed, {}, probe.error().message, "", ""});
  return none;
}

std::vector<Entry> RecordedSystem::entries(const EntryRequest& request) {
  // One look at all of them, each with a question of its own.
  auto looked = m_machine == nullptr ? std::vector<Entry>(request.queries.size()) : m_machine->entries(request);
  for (std::size_t index = 0; index < looked.size(); ++index) {
    const auto& query = request.queries[index];
    auto entry = m_recording->ask("entry", std::tuple(query, name_of(request.as)),
                                  [&]() -> Result<Entry> { return looked[index]; });
    if (entry) {
      looked[index] = std::move(*entry);
      continue;
    }
    looked[index].path = looked[index].resolved = query.path;
    looked[index].error_number = ENODATA;
    looked[index].detail = entry.error().message;
  }
  return looked;
}

Result<void> RecordedSystem::hold_locks(const LockRequest&, const std::function<void(const HeldLocks&)>&) {
  return fail(no_change());
}

Identity RecordedSystem::identity() {
  return m_recording->ask("identity", std::string(), [&]() -> Result<Identity> { return m_machine->identity(); })
      .value_or(Identity());
}

Result<int> RecordedSystem::run_worker(const WorkerRequest&) {
  return fail(no_change());
}

Result<User> RecordedSystem::user(std::string_view name) {
  return m_recording->ask("user", name, [&] { return m_machine->user(name); });
}

std::chrono::system_clock::time_point RecordedSystem::now() {
  using std::chrono::nanoseconds;
  const auto time = m_recording->ask("now", std::string(), [&]() -> Result<nanoseconds> {
    return std::chrono::duration_cast<nanoseconds>(m_machine->now().time_since_epoch());
  });
  return std::chrono::system_clock::time_point(time.value_or(nanoseconds(0)));
}

} // namespace sharefs::sys

#pragma once
// A machine whose answers are taken down, or one that is not there but for them.
#include "sys/recording.hpp"

#include <memory>

namespace sharefs::sys {

/// Reads only: whatever would change a machine is `unsupported`.
class RecordedSystem final : public System {
 public:
  /// `machine`: whose answers are taken down; nullptr where the recording answers.
  RecordedSystem(System* machine, std::shared_ptr<Recording> recording);

  Result<Completed> run(const Command& command) override;
  Error exec(const Argv& argv, const std::vector<std::string>& environment) override;
  Result<MountTable> mounts() override;
  Result<void> mount(const MountCall& call) override;
  Result<void> unmount(const UnmountCall& call) override;
  NfsProbe probe_nfs(const NfsProbeRequest& request) override;
  std::vector<Entry> entries(const EntryRequest& request) override;
  Result<void> hold_locks(const LockRequest& request, const std::function<void(const HeldLocks&)>& meanwhile) override;
  Identity identity() override;
  Result<int> run_worker(const WorkerRequest& request) override;
  Result<User> user(std::string_view name) override;
  std::chrono::system_clock::time_point now() override;

 private:
  System* m_machine;
  std::shared_ptr<Recording> m_recording;
};

} // namespace sharefs::sys

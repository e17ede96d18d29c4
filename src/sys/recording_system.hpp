#pragma once
// Wraps another System and writes down every question and answer as a script for ScriptedSystem (`--record FILE`).
#include "sys/system.hpp"

#include <memory>

namespace sharefs::sys {

class RecordingSystem final : public System {
 public:
  explicit RecordingSystem(System& inner);
  ~RecordingSystem() override;

  Result<Completed> run(const Command& command) override;
  Error exec(const Argv& argv, const std::vector<std::string>& environment) override;
  Result<MountTable> mounts() override;
  Result<void> mount(const MountCall& call) override;
  Result<void> unmount(const UnmountCall& call) override;
  NfsProbe probe_nfs(const NfsProbeRequest& request) override;
  std::vector<PathProbe> probe_paths(const std::vector<PathProbeRequest>& requests) override;
  Result<std::vector<PathFact>> inspect(const InspectRequest& request) override;
  Identity identity() override;
  Result<User> user(std::string_view name) override;
  std::chrono::system_clock::time_point now() override;

  /// The script so far (see ScriptedSystem).
  [[nodiscard]] std::string to_json() const;

 private:
  struct Record;
  System& m_inner;
  std::unique_ptr<Record> m_record;
};

} // namespace sharefs::sys

#pragma once
#include "sys/system.hpp"

namespace sharefs::sys {

/// Makes spdlog write to stderr at debug level (`--verbose`), or turns it off. Called once, by the command line.
void set_verbose(bool verbose);

/// The real machine. With a root other than "/", the functions that change the running host (mount, unmount, run, exec,
/// run_worker) fail with `unsupported`; probing and reading the mount table still work.
class RealSystem final : public System {
 public:
  explicit RealSystem(const std::string& root = "/") : System(Files(root)) {}

  Result<Completed> run(const Command& command) override;
  Error exec(const Argv& argv, const std::vector<std::string>& environment) override;
  Result<MountTable> mounts() override;
  Result<void> mount(const MountCall& call) override;
  Result<void> unmount(const UnmountCall& call) override;
  NfsProbe probe_nfs(const NfsProbeRequest& request) override;
  std::vector<Entry> entries(const EntryRequest& request) override;
  Identity identity() override;
  Result<int> run_worker(const WorkerRequest& request) override;
  Result<User> user(std::string_view name) override;
  std::chrono::system_clock::time_point now() override;
};

} // namespace sharefs::sys

#pragma once
// The boundary: everything outside of files under the root that sharefs reads or changes goes through this interface.
// RealSystem does it; in tests a scripted machine answers (tests/support/scripted_system.hpp).
#include "base/argv.hpp"
#include "base/result.hpp"
#include "sys/fs/entry.hpp"
#include "sys/fs/files.hpp"
#include "sys/identity/identity.hpp"
#include "sys/mounting/mount_call.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/nfs/nfs_probe.hpp"
#include "sys/process/user.hpp"
#include "sys/programs/process.hpp"
#include "sys/worker/worker.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace sharefs::sys {

class System {
 public:
  virtual ~System() = default;

  virtual Result<Completed> run(const Command& command) = 0;
  /// Returns only on failure.
  virtual Error exec(const Argv& argv, const std::vector<std::string>& environment) = 0;
  virtual Result<MountTable> mounts() = 0;
  /// The mount lies on the directory that `target` is, reached without symbolic links, whatever it is renamed to
  /// meanwhile. Asks the server first whether it is there. Errors: `timeout`, `busy`, `permission`, `usage` (an
  /// option), `unsupported` (a version), `not_found` (mount.nfs, the export), `conflict` (no directory), `interrupted`,
  /// `failed`.
  virtual Result<void> mount(const MountCall& call) = 0;
  /// Success: the topmost mount at target is no longer in the table. Errors: `not_found` (nothing is mounted there),
  /// `busy`, `timeout`, `permission`, `failed`. The target is named as in the mount table, not through a link.
  virtual Result<void> unmount(const UnmountCall& call) = 0;
  virtual NfsProbe probe_nfs(const NfsProbeRequest& request) = 0;
  /// Looks at the paths; the answers are in their order. See read_entries.
  virtual std::vector<Entry> entries(const EntryRequest& request) = 0;
  Entry entry(EntryQuery query, std::chrono::milliseconds deadline = std::chrono::seconds(3)) {
    return entries({{std::move(query)}, deadline, std::nullopt}).front();
  }
  virtual Identity identity() = 0;
  /// sharefs once more, as another user; see run_worker(). Its exit code.
  virtual Result<int> run_worker(const WorkerRequest& request) = 0;
  /// By name, or by number. `not_found` with a "did you mean" hint where one can be given.
  virtual Result<User> user(std::string_view name) = 0;
  virtual std::chrono::system_clock::time_point now() = 0;

  /// Files under the root: real in every implementation.
  [[nodiscard]] const Files& files() const { return m_files; }

 protected:
  explicit System(Files files) : m_files(std::move(files)) {}
  System(const System&) = default;
  System& operator=(const System&) = default;

 private:
  Files m_files;
};

} // namespace sharefs::sys

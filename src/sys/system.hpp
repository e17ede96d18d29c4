#pragma once
// The interface between sharefs and the machine: except for files under the root, everything that sharefs reads or
// changes goes through it. RealSystem is the real machine; tests use a scripted one
// (tests/support/scripted_system.hpp).
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
#include <string>
#include <string_view>

namespace sharefs::sys {

class System {
 public:
  virtual ~System() = default;

  virtual Result<Completed> run(const Command& command) = 0;
  /// Replaces this process by a program; returns only on failure.
  virtual Error exec(const Argv& argv, const std::vector<std::string>& environment) = 0;
  virtual Result<MountTable> mounts() = 0;
  /// Mounts on the directory `target`, which is reached without symbolic links and held open, so that a rename in the
  /// meantime does not matter. Checks first whether the server answers. Errors: `timeout`, `busy`, `permission`,
  /// `usage` (an option), `unsupported` (a version), `not_found` (mount.nfs, the export), `conflict` (no directory),
  /// `interrupted`, `failed`.
  virtual Result<void> mount(const MountCall& call) = 0;
  /// Unmounts the topmost mount at the target; success means that it is no longer in the mount table. The target must
  /// be the path in the mount table, without links. Errors: `not_found` (nothing is mounted there), `busy`, `timeout`,
  /// `permission`, `failed`.
  virtual Result<void> unmount(const UnmountCall& call) = 0;
  virtual NfsProbe probe_nfs(const NfsProbeRequest& request) = 0;
  /// Reads the entries of the paths, in the order of the queries. See read_entries().
  virtual std::vector<Entry> entries(const EntryRequest& request) = 0;
  Entry entry(EntryQuery query, std::chrono::milliseconds deadline = std::chrono::seconds(3)) {
    return entries({{std::move(query)}, deadline, std::nullopt}).front();
  }
  virtual Identity identity() = 0;
  /// Runs sharefs as another user and returns its exit code; see run_worker().
  virtual Result<int> run_worker(const WorkerRequest& request) = 0;
  /// Finds a user by name or by uid. Error `not_found`, with a "did you mean" hint if a name is similar.
  virtual Result<User> user(std::string_view name) = 0;
  virtual std::chrono::system_clock::time_point now() = 0;

  /// Returns the access to files under the root, which are real files in every implementation.
  [[nodiscard]] const Files& files() const { return m_files; }

 protected:
  explicit System(Files files) : m_files(std::move(files)) {}
  System(const System&) = default;
  System& operator=(const System&) = default;

 private:
  Files m_files;
};

} // namespace sharefs::sys

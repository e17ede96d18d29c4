#pragma once
// sharefs once more, for another user: what root starts in that user's name beyond a look or a change of its own. The
// worker has a session of its own, an environment from nothing, root's ids nowhere, and none of root's descriptors:
// what it reads and writes is copied by this process, which stays root's and keeps the terminal (as sudo's use_pty).
#include "base/argv.hpp"
#include "base/result.hpp"
#include "sys/process/fd.hpp"
#include "sys/process/user.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::sys {

struct WorkerRequest {
  User user;
  Argv words;                           ///< the command line of sharefs, behind the program's name
  std::vector<std::string> environment; ///< NAME=value, beside or in place of those of environment_of()
  std::string directory;                ///< working directory, if that user may enter it; else the user's home, or `/`
  std::string config;                   ///< text of sharefs.yaml, which that user may not be able to read
  bool makes_view = false;              ///< it needs run_layered(): it gets a user namespace, which users may not make
  std::string program = "/proc/self/exe";
};

/// Runs it to its end; its exit code, 128 + n for signal n. Whoever stops waiting for it, by a third Ctrl-C, ends it.
/// Errors: `permission` (not root), `failed` (it could not be started).
Result<int> run_worker(const WorkerRequest& request);

/// Descriptors that a worker has inherited from root.
struct WorkerGifts {
  bool is_worker = false;
  std::optional<std::string> config; ///< text of sharefs.yaml
  int user_namespace = -1;           ///< see make_user_namespace(); for this process's life, no program inherits it
  /// Reads it, and takes its names out of the environment of this process. Root is never a worker.
  static WorkerGifts take();
};

/// A user namespace of `user` with the user's own number and groups, in which groups cannot be given up: who is kept
/// out of a file by a group stays out (user_namespaces(7)). Root's right makes it where ordinary users may have none.
Result<Fd> make_user_namespace(const User& user);

} // namespace sharefs::sys

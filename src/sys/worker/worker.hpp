#pragma once
// A worker is sharefs executed again for another user, for work of root in that user's name that is more than one read
// or one change. It has its own session, a new environment, none of root's ids and none of root's descriptors. This
// process stays root, keeps the terminal and copies the worker's input and output (as sudo's use_pty).
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
  Argv words;                           ///< the command line of sharefs, without the program's name
  std::vector<std::string> environment; ///< NAME=value, added to environment_of() or replacing its variables
  std::string directory;                ///< working directory, if that user may enter it; else the user's home, or `/`
  std::string config;                   ///< text of sharefs.yaml, which that user may not be able to read
  bool makes_view = false; ///< it runs a command in Layers: it gets a user namespace, in case users cannot make one
  std::string program = "/proc/self/exe";
};

/// Runs the worker to its end and returns its exit code, 128 + n for signal n. A third Ctrl-C kills it. Errors:
/// `permission` (this process is not root), `failed` (the worker could not be started).
Result<int> run_worker(const WorkerRequest& request);

/// The data that a worker has inherited from root by descriptors.
struct WorkerInheritance {
  bool is_worker = false;
  std::optional<std::string> config; ///< text of sharefs.yaml
  int user_namespace = -1;           ///< see make_user_namespace(); it stays open in this process and is closed by exec
  /// Reads the descriptors, and removes the variable that names them from the environment. Root is never a worker.
  static WorkerInheritance take();
};

/// Makes a user namespace of `user` that maps the user's own uid and groups. Groups cannot be dropped there, so a file
/// that excludes a group still excludes its members (user_namespaces(7)). It is made with root's capability, because
/// the host may not allow ordinary users to make one.
Result<Fd> make_user_namespace(const User& user);

} // namespace sharefs::sys

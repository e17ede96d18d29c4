#pragma once
// Who does a command of root's: the owner of a store changes it, and whoever may read it reads it.
#include "cli/context.hpp"
#include "conda/homes.hpp"

#include <optional>

namespace sharefs::cli {

/// The store, or a path below it, as root or as a user of `conda.homes` sees it. `list`: with its names. `permission`:
/// root may not, and nobody of them.
Result<conda::PermittedEntries> see_store(Context& context, const std::string& store, bool list);
/// Root is refused at `path`, and so is everybody in whose name it could look: where it can be done.
Error nobody_may(Context& context, const std::string& path);
/// Says as whom root has read it, if not as itself.
void say_read_by(Context& context, const std::string& path, const std::optional<sys::User>& by);

/// A command of root's that is done in the name of a user.
struct WorkerTask {
  sys::User user = {};
  std::string why = {};                      ///< said to root
  Argv more_words = {};                      ///< of the command line, in front of a `--`
  std::vector<std::string> environment = {}; ///< NAME=value, beside what every worker gets
  bool makes_view = false;                   ///< see sys::WorkerRequest
};
/// The command that runs, once more, by a worker of that user (sys::run_worker), which also prints what it has to say.
/// Its exit code.
Result<int> work_as(Context& context, WorkerTask task);
/// Root works in a store, or in an environment, as the user to whom it belongs: root may be nobody on the server, and
/// programs of packages are not for root to run. The worker's exit code; nullopt: this process goes on itself, as that
/// user or as root whose own the store is. `permission` with the cure. Of `task` user and why are filled in.
Result<std::optional<int>> work_as_owner(Context& context, const std::string& path, WorkerTask task = {});

/// CommandSpec::elsewhere of what only reads a store: root whom its server takes for nobody (root_squash) reads it as a
/// user of `conda.homes` who may. `permission` where nobody of them may.
Result<std::optional<int>> read_as_whoever_may(Context& context, const Arguments& arguments);
/// CommandSpec::elsewhere of what changes a shared environment, the first word: root works as the owner of the store.
Result<std::optional<int>> change_store_as_owner(Context& context, const Arguments& arguments);
/// CommandSpec::elsewhere of what changes an environment where it lies: on a share root works as its owner.
Result<std::optional<int>> change_as_owner(Context& context, const Arguments& arguments);

} // namespace sharefs::cli

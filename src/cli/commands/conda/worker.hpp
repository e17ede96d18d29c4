#pragma once
// Who does the work of root's command: the owner of a store changes it, and a user who may read it reads it.
#include "cli/context.hpp"
#include "conda/homes.hpp"

#include <optional>

namespace sharefs::cli {

/// Reads the store, or a path below it, as root or, if root is refused, as a user of `conda.homes`; with `list` also
/// its names. Error `permission` if neither root nor any of these users may read it.
Result<conda::PermittedEntries> see_store(Context& context, const std::string& store, bool list);
/// Returns the error for a `path` that root may not read, and no other user for root either; the hint says where it can
/// be done.
Error nobody_may(Context& context, const std::string& path);
/// Prints as which user root has read the path, if not as root.
void report_reader(Context& context, const std::string& path, const std::optional<sys::User>& by);

/// A command of root that is run as another user.
struct WorkerTask {
  sys::User user = {};
  std::string why = {};                      ///< printed for root
  Argv more_words = {};                      ///< further arguments, inserted in front of a `--`
  std::vector<std::string> environment = {}; ///< NAME=value, in addition to the environment of every worker
  bool makes_view = false;                   ///< see sys::WorkerRequest
};
/// Runs this command once more in a worker of that user (sys::run_worker), which prints the output. Returns its exit
/// code.
Result<int> work_as(Context& context, WorkerTask task);
/// Runs the command as the owner of a store or an environment: root may be nobody on the server, and root must not run
/// the programs of packages. Returns the exit code of the worker, or the error `permission` with the cure; nullopt if
/// this process goes on itself, because it is not root's, or root owns the path. The user and the reason of `task` are
/// filled in.
std::optional<Result<int>> work_as_owner(Context& context, const std::string& path, WorkerTask task = {});

/// CommandSpec::elsewhere of commands that only read a store: if the server maps root to nobody (root_squash), it is
/// read as a user of `conda.homes` who may read it. Error `permission` if none of them may.
std::optional<Result<int>> read_as_permitted_user(Context& context, const Arguments& arguments);
/// CommandSpec::elsewhere of commands that change a shared environment, their first argument: root works as the owner
/// of the store.
std::optional<Result<int>> change_store_as_owner(Context& context, const Arguments& arguments);
/// CommandSpec::elsewhere of commands that change an environment in its place: on a share root works as its owner.
std::optional<Result<int>> change_as_owner(Context& context, const Arguments& arguments);

} // namespace sharefs::cli

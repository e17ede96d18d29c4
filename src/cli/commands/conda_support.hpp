#pragma once
// What the commands on shared environments have in common.
#include "cli/context.hpp"
#include "conda/environment.hpp"
#include "conda/environment_store.hpp"
#include "conda/homes.hpp"

#include <optional>

namespace sharefs::cli {

struct StoreName {
  std::string store, name;
};
/// ENV of a command line: a name in the store of sharefs.yaml, or a path that leads to one there. `usage`, `config`.
Result<StoreName> store_name(Context& context, const std::string& word);

/// The store, or a path below it, as root or as a user of `conda.homes` sees it. `list`: with its names. `permission`:
/// root may not, and nobody of them.
Result<conda::Seen> see_store(Context& context, const std::string& store, bool list);
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
/// CommandSpec::elsewhere of what changes an environment where it lies: on a share root works as its owner.
Result<std::optional<int>> change_as_owner(Context& context, const Arguments& arguments);

/// The environment, which has generations. `not_found` with the way there.
Result<conda::SharedEnvironment> shared_environment(Context& context, const StoreName& where);

/// For as long as the environment is changed, on all hosts. Waits for --wait.
Result<sys::Lease> take_lease(Context& context, const conda::SharedEnvironment& environment);

/// Takes away notes in the uses/ of an environment whose processes have ended, each as its user: our own or, for root,
/// all. Only this host knows that they have; on others they would count as jobs.
void clear_uses(Context& context, const std::string& store, const std::string& name, std::vector<conda::Use> ended);

/// All of an environment, with a line that tells how far it is.
Result<conda::EnvironmentState> read_environment(Context& context, const conda::EnvironmentRequest& request);

/// What `conda list` shows as VERIFIED: this generation, by its record, is good now, or (`good` false) is not. Left out
/// where this user may not write.
void note_verified(Context& context, const std::string& store, const std::string& name, const conda::Generation& record,
                   bool good);

/// Does `conda list` show a time for it?
bool is_verified(Context& context, const std::string& store, const std::string& name, const conda::Generation& record);

/// Of what lies at `path`, made here and now; number, prefix and sizes are still to come.
Result<conda::Generation> new_record(Context& context, const std::string& path, std::string command);

/// `--limit`: what a copy may take of the network or the disk that others use, too.
inline constexpr OptionSpec k_limit_option{
    .names = "--limit", .value = "SIZE", .help = "copy no more than this in a second: 200M"};
/// What a command line asks for that copies an environment.
struct CopyRequest {
  StoreName where;
  config::Conda::Settings settings;   ///< of this environment
  std::uint64_t bytes_per_second = 0; ///< --limit; 0: none
};
Result<CopyRequest> copy_request(Context& context, const Arguments& arguments);

/// The number behind `--to`, `N`: `usage` for anything else.
Result<unsigned> generation_argument(const std::string& word);

/// "2026-11-22 10:15", UTC.
std::string format_time(std::int64_t seconds);

} // namespace sharefs::cli

#pragma once
// Shared by the commands of `conda`: the place of the environment that a command line names, and who does the work of
// root's command: the owner of a store changes it, and a user who may read it reads it.
#include "cli/context.hpp"
#include "cli/execute.hpp"
#include "conda/change.hpp"
#include "conda/homes.hpp"
#include "conda/inventory.hpp"
#include "conda/link.hpp"
#include "conda/make_generation.hpp"

#include <functional>
#include <optional>

namespace sharefs::cli {

/// Returns the section `conda:` of sharefs.yaml. Error `config`, with `hint`, if there is none.
Result<const config::Conda*> conda_section(
    Context& context,
    const std::string& hint = "add one: `conda: {store: /PATH/ON/SHARE, envs: [NAME], homes: {users: [NAME]}}`");

/// Returns `conda.stage` of an environment; "" if nothing is configured, because an environment that is named by its
/// path needs no configuration.
std::string stage_of(Context& context, const std::string& environment);

/// Returns the users and the places of their conda; for a user other than root only the own place.
std::vector<conda::Homes> homes_of(const config::Conda& conda, const sys::Identity& self);

/// Error `usage` if the rule for names in sharefs.yaml refuses the name.
Result<void> check_environment_name(const std::string& name);

/// True if the working directory has a directory of this name, which `./WORD` would name.
bool is_directory_here(Context& context, const std::string& word);

/// Returns the path of an environment: WORD is a name in the store of sharefs.yaml or, with a slash, a path.
Result<std::string> environment_path(Context& context, const std::string& word);

/// Returns the mounts of sharefs.yaml. For those above `path` that are not mounted it asks whether this host is their
/// server.
std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config, const std::string& path);

/// Error SF301 if the path lies on a share of sharefs.yaml that is not mounted; such a path is not read.
Result<void> check_share(Context& context, const std::string& path);

/// Returns the names of all environments of the store, none for an empty one. Error, with the cure, for a store that is
/// not there, hangs or may not be read.
Result<std::vector<std::string>> shared_names(Context& context);

struct StoreName {
  std::string store, name;
};
/// Resolves ENV: a name in the store of sharefs.yaml, or a path that leads to an environment there. Errors: `usage`,
/// `config`.
Result<StoreName> store_name(Context& context, const std::string& word);

/// `--limit`: the most that a copy may take of a network or disk that others use, too.
inline constexpr OptionSpec k_limit_option{
    .names = "--limit", .value = "SIZE", .help = "copy no more than this in a second: 200M"};
/// Returns the value of `--limit`; 0 if it was not given. Error `usage` if it is not a size.
Result<std::uint64_t> limit_of(const Arguments& arguments);

/// Returns the environments of the store, with the users who link to them; a user other than root sees only the links
/// of the own home. `only` is the name of one environment; empty: all.
Result<conda::Inventory> read_inventory(Context& context, const std::string& only);

/// Runs a command for one environment after the other, each below a heading. Returns one exit code for all: 3 if
/// something is pending, 4 if some failed; Ctrl-C ends it. Error `usage` for --json, whose document describes one
/// environment.
Result<int> for_each_environment(Context& context, const std::vector<std::string>& names,
                                 const std::function<Result<int>(const std::string& name)>& work);

/// Returns "2026-11-22 10:15", in UTC.
std::string format_time(std::int64_t seconds);

/// Reads the number of a generation (`--to`, `--keep`). Error `usage` for anything else.
Result<unsigned> generation_argument(const std::string& word);
/// Returns how this command names itself to others that wait for the lease of an environment, and how long it waits
/// itself.
sys::LeaseRequest lease_settings(const Context& context);
/// Executes the plan that gives a new generation its name and switches to it; before the steps it is made by
/// `make`, and published. Notes afterwards whether it is sound.
Result<Executed> execute_switch(Context& context, Proposal proposal,
                                const std::function<Result<conda::NewGeneration>()>& make);
/// Returns the settings of sharefs.yaml for a new generation of an environment, which may get the guard
/// (`caches.guard: always`).
conda::GenerationSettings generation_settings(Context& context, const std::string& environment, bool adds_guard);

/// A change of which generations there are, or which of them users see.
struct EnvironmentChange {
  std::string nothing; ///< message when there is nothing to do
  std::function<Result<conda::SharedEnvironment>(sys::System&, const std::string& store, const std::string& name)> find;
  std::function<Result<plan::Plan>(const conda::SharedEnvironment&)> make;
  /// Checks again when the first steps are done (see plan::ApplyOptions); if it refuses, these steps are undone. May be
  /// empty.
  std::function<Result<void>(const conda::SharedEnvironment& now)> check_again = {};
};
/// Reads the environment again under its lease, makes a plan with `make`, and executes it.
Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change);

// ---- who does the work ----

/// Reads the store, or a path below it, as root or, if root is refused, as a user of `conda.homes`; with `list` also
/// its names. Error `permission` if neither root nor any of these users may read it.
Result<conda::PermittedEntries> see_store(Context& context, const std::string& store, bool list);
/// Returns the error for a `path` that root may not read, and no other user for root either; the hint says where it can
/// be done.
Error nobody_may(Context& context, const std::string& path);
/// Prints once as which user root has read the path, if not as root.
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

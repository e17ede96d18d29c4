#pragma once
// One command line with all that the decisions about it need: its words, its environment, and the facts about paths.
// Internal to the room.
#include "cachefix/facts.hpp"
#include "cachefix/run_plan.hpp"

namespace sharefs::cachefix {

struct Launch {
  const Argv& argv;
  const Walk& walk;
  const Start& start;
  Facts& facts;
  const Rules& rules;

  /// Returns the value of a variable as the program will see it; nullopt if it is not set or empty.
  [[nodiscard]] std::optional<std::string> variable(const Program& program, std::string_view name) const;
  /// Returns all variables that the program will see and that are not empty.
  [[nodiscard]] Environment all_variables(const Program& program) const;
  /// Returns HOME as the program will see it, or the home directory in passwd if that is no absolute path.
  [[nodiscard]] std::string home(const Program& program) const;
  /// Returns the absolute path that a value means to the program: `~` is expanded, and a relative path begins at its
  /// working directory. nullopt if the value is no path (empty, a URL). `..` stays, because the kernel resolves it
  /// after links.
  [[nodiscard]] std::optional<std::string> resolve_path(const Program& program, const std::string& value) const;
  /// Returns the path of a command's file, or with `here` that of a file in the working directory, or of a command if
  /// the name has no suffix; empty if there is none.
  [[nodiscard]] std::string find_file(const Program& program, const std::string& name, bool here) const;
  /// Returns the first bytes of the program's file; empty if they are not known.
  [[nodiscard]] std::string read_start(const Program& program) const;
  /// True if the program is certainly not Python and starts none.
  [[nodiscard]] bool runs_no_python(const Program& program) const;
  /// True if the program reads the variables that name caches: Python does, and programs that start Python.
  [[nodiscard]] bool reads_caches(const Program& program) const;
  /// True if the guard will run in the program.
  [[nodiscard]] bool is_guarded(const Program& program) const;
};

/// True if the program is a Python that does not run the guard (Means::isolates).
bool is_isolated(const Program& program);
/// True if a file that starts with this text is run by Python: its `#!` line says so.
bool is_python_start(const std::string& start);

/// Returns the options of a program that have values: `--key value`, `--key=value`. Names are as spelled.
std::vector<Assignment> program_options(const Argv& argv, const Program& program);

/// Decides about the options and the environment variables of a program that name caches.
Decisions decide_caches(const Launch& launch, const Program& program, const Row* framework);
/// Rewrites options of a program in a container of this host, if the container sees the node-local directory.
Decisions decide_in_container(const Launch& launch);
/// Sets the guard's own variables for every program that may start Python.
Decisions decide_guard(const Launch& launch, const Program& program);
/// Adds the words that bring the variables of these decisions to programs behind launchers that do not hand on the
/// environment, such as env, srun, mpirun and micromamba.
Decisions carry(const Launch& launch, const Decisions& decided);
/// True if variables can reach the program on every host.
bool can_carry(const Launch& launch, const Program& program);
/// Returns the first word that takes the guard away from a program of this command line; its `code` is empty if no word
/// does.
Mention find_loss(const Launch& launch);

/// Returns a decision that replaces a value in the command line.
Decision rewrite_value(const Assignment& word, const std::string& to);
/// Gives the program a variable: in the word that assigns it, or else in the environment. nullopt if nothing changes.
std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value);
/// True if an option or a hostfile names the hosts on which the launcher starts the program.
bool names_hosts(const Launch& launch, const ChainLink& link);
/// True if the nodes of the program are not known now: srun and the like choose them, and so does mpirun in an
/// allocation if no hosts are named.
bool on_unknown_nodes(const Launch& launch, const ChainLink& link);
/// True if `/usr/bin/env NAME=value` can be put in front of the launcher's command. False if the launcher copies the
/// command's file, takes a batch script, or finds the command in the working directory, as Open MPI does.
bool takes_words(const Launch& launch, const Program& program, const ChainLink& link);

} // namespace sharefs::cachefix

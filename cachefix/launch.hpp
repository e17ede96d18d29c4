#pragma once
// One command line that is decided about: its words, what is around it, and whom to ask. Internal to the room.
#include "cachefix/facts.hpp"
#include "cachefix/run_plan.hpp"

namespace sharefs::cachefix {

struct Launch {
  const Argv& argv;
  const Walk& walk;
  const Start& start;
  const Environment& environment;
  Facts& facts;
  const Rules& rules;

  /// The value of a variable as the program will see it; nullopt: not set or empty.
  [[nodiscard]] std::optional<std::string> variable(const Program& program, std::string_view name) const;
  /// All that are set and not empty.
  [[nodiscard]] Environment all_variables(const Program& program) const;
  [[nodiscard]] std::string home(const Program& program) const;
  /// A value as the program would resolve it: `~`, relative to its working directory; nullopt if it is no path (empty,
  /// a URL). `..` stays: it is resolved through links.
  [[nodiscard]] std::optional<std::string> absolute(const Program& program, const std::string& value) const;
  /// The same where it lies on shared storage; else nullopt.
  [[nodiscard]] std::optional<std::string> shared_path(const Program& program, const std::string& value) const;
  /// Where a command of this name may lie: at its path, or in the directories of PATH.
  [[nodiscard]] std::vector<std::string> paths_of(const Program& program, const std::string& command,
                                                  const std::string& if_no_path = "") const;
  /// The first bytes of its file, or the whole of a script; empty: not known.
  [[nodiscard]] const std::string& file_of(const Program& program) const;
  /// The node-local directory for a shared path; empty: there is none.
  [[nodiscard]] std::string local_for(const std::string& shared_path, Holds holds = Holds::data) const;
  /// Is the hub told to stay offline? Then what lies in a cache is needed.
  [[nodiscard]] bool is_offline(const Program& program) const;
  /// Is it certainly no program of Python's, nor does it start one?
  [[nodiscard]] bool runs_no_python(const Program& program) const;
  /// Will it read the variables that say where caches are? Python does, and what starts Python.
  [[nodiscard]] bool reads_caches(const Program& program) const;
  /// Is it a Python that does not read PYTHONPATH?
  [[nodiscard]] bool is_isolated(const Program& program) const;
  /// Does the guard get hold of the program?
  [[nodiscard]] bool is_guarded(const Program& program) const;
};

/// Does a file begin as a program of Python's?
bool is_python_start(const std::string& start);

/// Options of a program with their values: `--key value`, `--key=value`. The name is as spelled.
std::vector<Assignment> program_options(const Argv& argv, const Program& program);

// The parts of a decision about a program.
Decisions decide_flags(const Launch& launch, const Program& program, const Row* framework);
/// Flags of a program in a container of this host: rewritten where it sees the node-local directory.
Decisions decide_in_container(const Launch& launch);
Decisions decide_variables(const Launch& launch, const Program& program, const Row* framework);
/// The guard's own variables, for all that may start Python.
Decisions decide_guard(const Launch& launch, const Program& program);
/// The words that it takes so that the variables that were set reach the programs, behind env, srun, mpirun and
/// micromamba.
Decisions carry(const Launch& launch, const Decisions& decided);
/// The option by which Python does not read PYTHONPATH; empty: there is none.
std::string isolating_option(const ChainLink& link);
/// Can variables be made to reach the program on every host?
bool can_carry(const Launch& launch, const Program& program);
/// What takes the guard away from the programs of this command line as it stands; empty `code`: nothing does.
Mention loss_of(const Launch& launch);

/// A reason, with what doctor says about hosts of one name, whose locks do not exclude each other.
std::string with_locks(const Launch& launch, const std::string& reason, const std::string& path);
/// Where the guard builds what the program caches at a shared path, as a decision that changes no word.
Decision guarded(const Launch& launch, const std::string& name, std::optional<std::size_t> index,
                 const std::string& value, const std::string& path);
/// Gives the program a variable: in the word that assigns it, or in the environment. nullopt if it has that value.
std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value);
Decision keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
              std::string reason);
/// Says that there is nowhere to move caches to. An error where a word names them, unless somebody else has taken the
/// names of this user's directories: nobody may stop the launches of others.
Decision no_local_directory(const Launch& launch, bool named, Holds holds = Holds::data);
/// Do file locks keep other hosts out at `path`, and is that enough (caches.when is racy)?
bool locks_are_enough(const Launch& launch, const std::string& path);

/// Does the launcher start the program on other hosts, as its hostfile or list of hosts says?
bool names_hosts(const Launch& launch, const ChainLink& link);
/// Is the program started on nodes that are not known now? By srun, and mpirun in an allocation, without a list of
/// hosts.
bool on_unknown_nodes(const Launch& launch, const ChainLink& link);
/// Can words stand in front of its command? Not where it copies the command's file, or finds it in the working
/// directory, as Open MPI and srun do.
bool takes_words(const Launch& launch, const Program& program, const ChainLink& link);

} // namespace sharefs::cachefix

#pragma once
// Finds the generation and the variables of activation with which `conda run` starts a command. The command stays in
// that generation even if STORE/ENV leads to another one later. Compare conda's activate.py; conda itself is not run.
#include "base/argv.hpp"
#include "base/diagnosis.hpp"
#include "conda/generation.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::conda {

/// A path in a generation: STORE/.generations/NAME/0003/REST.
struct GenerationPath {
  std::string store, name;
  unsigned number = 0;
  std::string rest; ///< "bin/python"; empty: the generation itself
  friend bool operator==(const GenerationPath&, const GenerationPath&) = default;
};
/// Parses a normalized path without links; nullopt if it is not in a generation.
std::optional<GenerationPath> in_generation(std::string_view path);

struct RunningPlace {
  std::string prefix;                                         ///< path of the environment, without links
  std::optional<GenerationPath> generation;                   ///< the generation that it is, or was staged from
  std::vector<std::pair<std::string, std::string>> variables; ///< of its packages, then of `conda env config vars`
  std::vector<std::string> scripts;                           ///< activate.d/*.sh, in their order
  bool noted = false;                                         ///< a note of this use was left beside it
  bool shared = false;                                        ///< it lies on storage that other hosts share
  Diagnoses found;                                            ///< files that could not be used (SF504)
};
/// Reads the environment to which `path` leads. `note` (use_note()) is left before anything else is read. `deadline`:
/// for the first answer. Errors: `not_found`, `timeout`, `permission`, or the error of the file system.
Result<RunningPlace> probe_running(sys::System& system, const std::string& path,
                                   const std::optional<sys::Note>& note = {},
                                   std::chrono::milliseconds deadline = std::chrono::seconds(3));

/// Returns the names and values that a file sets: etc/conda/env_vars.d/*.json, or conda-meta/state in its member
/// `below` ("env_vars"). `failed`: the text is no JSON object of strings.
Result<std::vector<std::pair<std::string, std::string>>> variables_in(std::string_view json,
                                                                      const char* below = nullptr);

/// Returns `environment` (NAME=value) as activation changes it, before its scripts run. `name`: CONDA_DEFAULT_ENV.
std::vector<std::string> activate(std::vector<std::string> environment, const RunningPlace& place,
                                  const std::string& name);
/// Returns `environment` for a command that changes the environment at `prefix`: as activate(), but without variables
/// that would make the command install elsewhere (PYTHONPATH, PIP_TARGET) and without packages in the user's home.
std::vector<std::string> environment_for_changes(std::vector<std::string> environment, const std::string& prefix,
                                                 const std::string& name);
/// Returns the environment that a shell has printed after the scripts, separated by NUL bytes, but with the shell's own
/// variables of `environment`.
std::vector<std::string> apply_script_output(std::vector<std::string> environment, std::string_view printed);

/// Names the generation in `environment`, so that the command, and commands which it starts, stay in it.
void set_generation(std::vector<std::string>& environment, const GenerationPath& generation);
/// Returns the command changed so that it stays in the generation that `environment` names: its path through STORE/NAME
/// becomes a path in that generation, and so does the interpreter that a script names. Other commands are not changed.
Argv pin_command(sys::System& system, Argv command, const std::vector<std::string>& environment,
                 const std::string& working_directory);

/// A program of a generation that runs on this host, whether `conda run` has started it or not.
struct RunningProgram {
  int pid = 0;
  GenerationPath in;
};
/// Finds such programs. Only root sees those of other users.
std::vector<RunningProgram> running_programs(sys::System& system);
/// Returns those that run in generations of the environment `name`, whose directory STORE/.generations/ENV is `root`. A
/// program may have come there by another path: a bind mount of the store, or one that exists in a container only.
std::vector<RunningProgram> programs_of(sys::System& system, std::vector<RunningProgram> programs,
                                        const std::string& name, const sys::Entry& root);

// The flow of `conda run` until it executes the command: the use is noted, a staged copy is chosen, and the scripts of
// activation are run.

/// Returns `conda.stage` for the environment with this name; empty: staged copies are not used.
using StageOf = std::function<std::string(const std::string& environment)>;

/// Returns the environment at `path`, or a complete copy of its generation on this host, and leaves a note of this
/// process's use beside it. Waits for a server that is being restarted. Errors: those of probe_running().
Result<RunningPlace> find_running(sys::System& system, const std::string& path, const StageOf& stage_of,
                                  const plan::Say& say);
/// Returns `environment` (NAME=value) as the scripts of activate.d change it. `said` gets their standard error and
/// output. Errors: `timeout`, `failed`.
Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said);

} // namespace sharefs::conda

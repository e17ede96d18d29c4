#pragma once
// What a command of `conda run` is started with: one generation, whatever STORE/ENV leads to later, and the variables
// that activating it sets. Compare conda's activate.py; nothing of conda is run.
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
/// nullopt: not in a generation. The path is normalized, with no link in it.
std::optional<GenerationPath> in_generation(std::string_view path);

struct RunningPlace {
  std::string prefix;                                         ///< where the environment lies, without links
  std::optional<GenerationPath> generation;                   ///< that it is, or was staged from
  std::vector<std::pair<std::string, std::string>> variables; ///< of its packages, then of `conda env config vars`
  std::vector<std::string> scripts;                           ///< activate.d/*.sh, in their order
  bool noted = false;                                         ///< this use is noted beside it
  bool shared = false;                                        ///< it lies on storage that other hosts share
  std::string python;                                         ///< "python3.11"; empty: none
  Diagnoses found;                                            ///< files that could not be used (SF504)
};
/// `path` leads to an environment. `note`: use_note(), left before anything else is looked at. `deadline`: for the
/// first answer. Errors: `not_found`, `timeout`, `permission`, or what the disk says.
Result<RunningPlace> probe_running(sys::System& system, const std::string& path,
                                   const std::optional<sys::Note>& note = {},
                                   std::chrono::milliseconds deadline = std::chrono::seconds(3));

/// "NAME=value" of what conda-meta/state and etc/conda/env_vars.d/*.json set. `failed`: no JSON object of texts.
Result<std::vector<std::pair<std::string, std::string>>> state_variables(std::string_view json);
Result<std::vector<std::pair<std::string, std::string>>> package_variables(std::string_view json);

/// `environment` (NAME=value) as activation leaves it, before its scripts. `name`: CONDA_DEFAULT_ENV.
std::vector<std::string> activated(std::vector<std::string> environment, const RunningPlace& place,
                                   const std::string& name);
/// `environment` for a command that changes the environment at `prefix`: as activated(), and what would lead it
/// elsewhere (PYTHONPATH, PIP_TARGET, packages in the user's home) is out.
std::vector<std::string> environment_for_changes(std::vector<std::string> environment, const std::string& prefix,
                                                 const std::string& name);
/// What a shell that sources the scripts prints at the end: its environment, with NULs.
Argv scripts_command(const std::vector<std::string>& scripts);
/// `environment` with what the scripts set and unset, but for the shell's own variables.
std::vector<std::string> after_scripts(std::vector<std::string> environment, std::string_view printed);

/// What is to be run so that the command stays in the generation at `prefix`: a path through STORE/NAME becomes one
/// of it, and so does the interpreter that a script names. Anything else is left as it is.
Argv pinned(sys::System& system, Argv command, const std::string& prefix, const GenerationPath& generation,
            const std::vector<std::string>& environment, const std::string& working_directory);

/// Names the generation in `environment`, so that commands which are started by the command stay in it, too.
void set_generation(std::vector<std::string>& environment, const GenerationPath& generation);
/// pinned() to the generation that `environment` names; the command as it is where it names none.
Argv pinned(sys::System& system, Argv command, const std::vector<std::string>& environment,
            const std::string& working_directory);

/// Programs of generations that run here, whether `conda run` has started them or not. Of other users' only root knows.
struct RunningProgram {
  int pid = 0;
  GenerationPath in;
};
std::vector<RunningProgram> running_programs(sys::System& system);

// The flow of `conda run` up to the moment when it becomes the command: its use is noted, a staged copy is taken, and
// the scripts of activation are run.

/// `conda.stage` of the environment with this name; empty: no copies are looked for.
using StageOf = std::function<std::string(const std::string& environment)>;

/// The environment at `path`, for this process, or a whole copy of its generation on this host. The process notes
/// beside it that it uses it. Waits for a server that is being started anew. Errors: those of probe_running().
Result<RunningPlace> find_running(sys::System& system, const std::string& path, const StageOf& stage_of,
                                  const plan::Say& say);
/// `environment` (NAME=value) once the scripts of activate.d have changed it. What they say goes to `said`. Errors:
/// `timeout`, `failed`.
Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said);

} // namespace sharefs::conda

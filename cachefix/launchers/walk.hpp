#pragma once
// From a command line down to the user's program: launcher by launcher, each one's own options skipped by its row.
// Pure: looks at words only.
#include "base/diagnosis.hpp"
#include "cachefix/launchers/launcher.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// One launcher of the chain, outermost first. Of mpirun and srun one for each command between `:`, which has the
/// options of those in front of it, too.
struct ChainLink {
  const Launcher* launcher = nullptr;
  std::string name;      ///< as it was called: "torchrun", "torch.distributed.run", "micromamba"
  std::size_t index = 0; ///< of its word in argv
  OptionsRead options;
  std::size_t command = 0; ///< index of the first word of what it runs; 0: not known
  bool certain = true;     ///< false: a word behind a program that has no row
};

/// A name and a value that words of the command line give to the program: NAME=value, or an option with its value.
struct Assignment {
  std::string name, value = {};
  std::size_t index = 0;       ///< of the word with the value
  std::size_t value_begin = 0; ///< offset of the value within the word
};

enum class ProgramKind {
  file,    ///< a script file that an interpreter runs
  module,  ///< python -m
  text,    ///< python -c
  program, ///< a program that is run directly
  shell,   ///< a shell string: bash -c, sbatch --wrap
};

/// The user's program, and all that the launchers in front of it change for it.
struct Program {
  ProgramKind kind = ProgramKind::program;
  std::size_t index = 0; ///< of the word with its name
  std::string name;
  std::size_t begin = 0, end = 0;   ///< its arguments in argv, without what stands behind its own `--`
  std::string directory;            ///< its working directory
  std::vector<Assignment> assigned; ///< in order; the last of a name counts
  std::vector<std::string> unset;   ///< taken out of its environment
  bool cleared = false;             ///< starts from an empty environment
  std::vector<std::string> kept;    ///< but for these
  bool python = false;
  std::vector<std::size_t> chain; ///< indices into Walk::chain

  /// The word that gives it this variable; nullptr if there is none.
  [[nodiscard]] const Assignment* assignment_of(std::string_view variable) const;
  [[nodiscard]] bool takes_away(std::string_view variable) const; ///< from the environment of its launchers
};

struct Walk {
  std::vector<ChainLink> chain;
  std::vector<Program> programs; ///< more than one only with `:` of mpirun and srun
  /// False: some word could not be told for certain, so no word may be changed. There is one program all the same, with
  /// the environment that the launchers in front of that word make; its arguments are not known.
  bool understood = true;
  /// The program starts where neither this environment nor these paths count: in a container, on another machine, as
  /// another user.
  bool elsewhere = false;
  std::optional<std::size_t> container; ///< the word that certainly starts one on this host
  Diagnoses problems;

  /// The launchers of a program, outermost first.
  [[nodiscard]] std::vector<std::reference_wrapper<const ChainLink>> links(const Program& program) const;
};

/// The same of a program; not of a shell text, which may end in such a name.
inline bool is_plain_tool(const Program& program) {
  const bool module = program.kind == ProgramKind::module;
  return (module && is_listed(program.name, words_of("modules"))) ||
         ((module || program.kind == ProgramKind::program) && is_plain_tool(program.name));
}

/// `directory` is the working directory of the command.
Walk walk(const Argv& argv, const std::string& directory);
/// What is said of a command that starts in a container.
inline constexpr std::string_view k_in_container =
    "it starts in a container, whose environment and paths are not this host's, so it is not guarded";
inline constexpr std::string_view k_into_container = "let the container run `sharefs run -- CMD...`";

} // namespace sharefs::cachefix

#pragma once
// Finds the user's program in a command line: goes from launcher to launcher and skips each one's options by its row.
// Pure: it reads words only.
#include "cachefix/launchers/launcher.hpp"

#include <deque>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// One launcher of the chain; the outermost is first. mpirun and srun have one link for each command between `:`, which
/// has the options of the commands in front of it, too.
struct ChainLink {
  const Launcher* launcher = nullptr;
  std::string name;      ///< as the command line has it: "torchrun", "torch.distributed.run", "micromamba"
  std::size_t index = 0; ///< its word in argv
  OptionsRead options;
  std::size_t command = 0; ///< index of the first word of the command that it runs; 0: not known
  bool certain = true;     ///< false: it is behind a program without a row, so it may be an argument
};

/// A name and a value in the command line: NAME=value for the program's environment, or an option with its value.
struct Assignment {
  std::string name, value = {};
  std::size_t index = 0;       ///< the word with the value
  std::size_t value_begin = 0; ///< offset of the value within the word
};

enum class ProgramKind {
  file,    ///< a script file that an interpreter runs
  module,  ///< python -m
  text,    ///< python -c
  program, ///< a program that a launcher or the kernel executes
  shell,   ///< a shell string: bash -c, sbatch --wrap
};

/// The user's program, with all changes that the launchers in front of it make to its environment.
struct Program {
  ProgramKind kind = ProgramKind::program;
  std::size_t index = 0; ///< the word with its name
  std::string name;
  std::size_t begin = 0, end = 0;   ///< its arguments in argv, up to its own `--`
  std::string directory;            ///< its working directory
  std::vector<Assignment> assigned; ///< in order; the last of a name counts
  std::vector<std::string> unset;   ///< variables that are removed from its environment
  bool cleared = false;             ///< it starts with an empty environment
  std::vector<std::string> kept;    ///< with these variables all the same
  bool python = false;
  std::vector<const ChainLink*> chain; ///< its launchers in Walk::chain, the outermost first

  /// Returns the assignment of this variable that counts; nullptr if there is none.
  [[nodiscard]] const Assignment* assignment_of(std::string_view variable) const;
  /// True if the launchers take this variable out of the environment.
  [[nodiscard]] bool takes_away(std::string_view variable) const;
};

/// A finding in a command line or in a shell text: a program, a cache, or a word that takes the guard away from
/// programs.
struct Mention {
  int line = 1;        ///< line of the text, from 1
  std::string code;    ///< SF402, SF404 or SF407 if the guard is lost, SF401 for an unknown option; else empty
  std::string subject; ///< the word that was found
  std::string says;    ///< what the word does; for a program its launchers, for a cache its value
  std::string hint = "let it run `sharefs run -- CMD...`";
  friend bool operator==(const Mention&, const Mention&) = default;
};

/// Its programs point into its chain, so it is moved and not copied.
struct Walk {
  std::deque<ChainLink> chain;
  std::vector<Program> programs; ///< more than one only with `:` of mpirun and srun
  /// False if the meaning of some word is not certain, so that no word may be changed. There is a program all the same,
  /// with the environment that the launchers in front of that word make; its arguments are not known.
  bool understood = true;
  /// True if the program starts where neither this environment nor these paths count: in a container, on another
  /// machine, or as another user.
  bool elsewhere = false;
  std::optional<std::size_t> container; ///< the word that certainly starts a container on this host
  std::vector<Mention> problems;
};

/// True for a program, module or file that is such a tool. A shell text is none, though it may end in the name of one.
inline bool is_plain_tool(const Program& program) {
  const bool module = program.kind == ProgramKind::module;
  return ((module || program.kind == ProgramKind::file) && is_listed(program.name, words_of("modules"))) ||
         ((module || program.kind == ProgramKind::program) && is_plain_tool(program.name));
}

/// Walks through a command line. `directory` is the working directory of the command; `depth` counts the commands
/// around it.
Walk walk(const Argv& argv, const std::string& directory, int depth = 0);
/// Returns the message about a command that starts in a container because of `subject`.
Mention starts_in_container(const std::string& subject, const std::string& by = {});

} // namespace sharefs::cachefix

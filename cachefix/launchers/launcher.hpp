#pragma once
// Launchers as a table: what starts a training program, where its own options end, and what it hands on. A launcher is
// a row of launchers.txt; options.cpp reads its options, walk.cpp follows the rows down to the user's program.
#include "base/argv.hpp"
#include "cachefix/table.hpp"

#include <optional>
#include <span>

namespace sharefs::cachefix {

/// What stands behind the options.
enum class Tail {
  command,  ///< a program and its arguments
  script,   ///< a Python file (or a module, or a program, by an option) and its arguments
  python,   ///< python itself: a file, or what -m and -c said
  shell,    ///< a shell script file, or a string by -c
  batch,    ///< a batch script file and its arguments, or --wrap
  contexts, ///< commands separated by `:`, each with options of its own
};

/// What an option means to us; all others only have to be skipped. A row says it as `--chdir=@directory`.
enum class Means {
  directory,    ///< the working directory of the command
  assign,       ///< NAME=value, or NAME alone, in the environment of the command
  assign_pair,  ///< NAME value
  assign_list,  ///< NAME=value,NAME,... with ALL and NONE (srun --export, bsub -env)
  unset,        ///< takes NAME out of the environment
  clear,        ///< starts from an empty environment
  module,       ///< the script is a module's name
  no_python,    ///< the script is a program; of a shell, it comes from stdin
  run_module,   ///< `-m NAME`: ends the options
  run_text,     ///< `-c TEXT`: ends the options
  command_text, ///< a shell string: this option's value (sbatch --wrap, env -S), or the first word (bash -c)
  hosts,        ///< a file with the hosts, or their names
  container,    ///< runs inside of a container
  command_file, ///< the launcher itself looks for the command's file, or copies it
  hands_on,     ///< only an mpirun that hands on its environment has this option
  information,  ///< prints something, or attaches to a process that runs; --help, --version and --usage always do
};

/// Does the environment of the launcher reach the program on every host?
enum class Carries {
  yes,    ///< same host, or the launcher exports all of it (srun)
  python, ///< the guard's at least: deepspeed hands on PYTHON*
  mpi,    ///< perhaps: Open MPI's remote ranks only get what -x names, MPICH's all
};

enum class Takes { nothing, value, attached, two };

/// An option of a row.
struct KnownOption {
  std::vector<std::string> names; ///< "-q", "--quiet"; the last is the canonical one; `*` at its end: all that begin so
  Takes takes = Takes::nothing;
  std::optional<Means> means = {};
  friend bool operator==(const KnownOption&, const KnownOption&) = default;
};

/// `hostfile`: read where no option of that meaning is given and this file exists. `export`: a variable that stands for
/// the assign_list option. `containers`: variables, `*` at the end of a name, with one of which it means
/// Means::container.
struct Launcher {
  Row row;
  std::string name, programs, verbs;
  Tail tail = Tail::command;
  Carries carries = Carries::yes;
  [[nodiscard]] std::string get(std::string_view field) const { return row.get(field); }
};

const std::vector<Launcher>& launchers();
std::vector<KnownOption> options_of(const std::string& options);
/// `python -m pip`, `python --version`, `python -c "import torch"`, of which this is the row: Python that builds no
/// datasets.
bool builds_nothing(const Launcher* row, std::span<const std::string> words);
/// The row `elsewhere` for a word that names a program; nullptr if there is none.
const Row* find_opaque(const std::string& word);
/// `ssh node1 "cd /job && python train.py"`: some word, or a part of one. `any`: also one that is not known, as in
/// `ssh node1 ./train` and `ssh node1 "$CMD"`.
bool names_some_program(std::span<const std::string> words, bool any = false);
/// Do words of a command, or of a shell text, start a container, or make a launcher do so? It may stand in one word
/// with others.
bool starts_container(std::span<const std::string> words);
/// Builtins of a shell, and tools that read none of the variables that say where caches are.
bool is_plain_tool(std::string_view program);

/// The row for argv[at], with its verb behind it and before `end`; nullptr if there is none.
const Launcher* find_launcher(const Argv& argv, std::size_t at, std::size_t end);
/// Does one of the launcher's verbs stand behind argv[at], if it has any?
bool has_verb(const Launcher& launcher, const Argv& argv, std::size_t at, std::size_t end);
/// The row for `python -m MODULE`; nullptr if there is none.
const Launcher* find_module_launcher(std::string_view module);

struct GivenOption {
  std::string name = {}; ///< canonical
  std::optional<Means> means = {};
  std::size_t index = 0;       ///< of the word with the option's name
  std::size_t value_index = 0; ///< of the word that holds the (last) value; `index` when attached
  std::string value = {};      ///< the value, or the first of two
  std::string second = {};     ///< the second of two
};

struct OptionsRead {
  std::vector<GivenOption> given;
  std::size_t end = 0; ///< index of the first word that is not an option
  std::string problem; ///< why reading stopped: "`--foo` is not an option that is known"; empty if all is clear
  bool ended_by_option = false; ///< -m or -c ended the options; it is given.back()
  /// The last of them with this meaning; nullptr if there is none.
  [[nodiscard]] const GivenOption* last(Means means) const;
};

/// Reads the options of `launcher` from argv[begin] up to the first non-option, never beyond `limit`. The spellings of
/// argparse, getopt and MPI are all read, because a launcher that does not know one fails by itself. An option that the
/// row does not know is a problem, never a guess.
OptionsRead read_options(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit);

} // namespace sharefs::cachefix

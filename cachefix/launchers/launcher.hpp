#pragma once
// A launcher is a program that starts a training program. Each is a row of launchers.txt, which says where its own
// options end and what it hands on. options.cpp reads its options, walk.cpp goes row by row to the user's program.
#include "base/argv.hpp"
#include "cachefix/table.hpp"

#include <optional>
#include <span>

namespace sharefs::cachefix {

/// The kind of words that follow a launcher's options.
enum class Tail {
  command,  ///< a program and its arguments
  script,   ///< a Python file and its arguments; an option can make it a module or a program
  python,   ///< the arguments of python itself: a file, or those of -m and -c
  shell,    ///< a shell script file, or a string by -c
  batch,    ///< a batch script file and its arguments, or --wrap
  contexts, ///< commands separated by `:`, each with options of its own
};

/// The meaning of an option, written as `--chdir=@directory` in a row. Options without one are only skipped.
enum class Means {
  directory,    ///< sets the working directory of the command
  assign,       ///< NAME=value or NAME: goes into the environment of the command
  assign_pair,  ///< the same with two words, NAME value
  assign_list,  ///< NAME=value,NAME,... with ALL and NONE (srun --export, bsub -env)
  unset,        ///< takes NAME out of the environment
  clear,        ///< starts from an empty environment
  module,       ///< the script is a module's name
  no_python,    ///< the script is no Python file but a program; for a shell: it is read from stdin
  run_module,   ///< `-m NAME`: ends the options
  run_text,     ///< `-c TEXT`: ends the options
  command_text, ///< a shell string: this option's value (sbatch --wrap, env -S), or the first word (bash -c)
  hosts,        ///< names the hosts, or a file of them
  container,    ///< runs the command in a container
  command_file, ///< the launcher itself looks for the command's file, or copies it
  hands_on,     ///< an option that only an mpirun which hands on its environment has
  isolates,     ///< Python does not run the guard: it reads no PYTHONPATH (-I, -E), or no sitecustomize (-S)
  information,  ///< only prints something or attaches to a live process; --help, --version, --usage always
};

/// Says whether the environment of the launcher reaches the program on every host.
enum class Carries {
  yes,    ///< it does: on the same host, or because the launcher exports all of it (srun)
  python, ///< the guard's PYTHONPATH does: deepspeed hands on PYTHON*
  mpi,    ///< not known: Open MPI hands remote ranks only what -x names, MPICH all
};

/// The values that an option takes: none, one word, one that may be attached (`--mpi=x`), or two words.
enum class Takes { nothing, value, attached, two };

/// An option of a row.
struct KnownOption {
  std::vector<std::string> names; ///< "-q", "--quiet"; the last is canonical; a `*` at the end matches anything
  Takes takes = Takes::nothing;
  std::optional<Means> means = {};
  friend bool operator==(const KnownOption&, const KnownOption&) = default;
};

/// A row of the kind `launcher`. Its field `hostfile` is the file of hosts that counts if no option names hosts,
/// `export` a variable that stands for the option with Means::assign_list, and `containers` the variables that mean the
/// same as an option with Means::container (a name may end in `*`).
struct Launcher {
  const Row& row;
  std::string name, programs, verbs;
  Tail tail = Tail::command;
  Carries carries = Carries::yes;
  [[nodiscard]] std::string get(std::string_view field) const { return row.get(field); }
};

/// Returns all launchers, in the order of the table.
const std::vector<Launcher>& launchers();
/// Parses the field `options` of a row.
std::vector<KnownOption> options_of(const std::string& options);
/// Returns the row `elsewhere` for a word that names a program; nullptr if there is none.
const Row* find_opaque(const std::string& word);
/// Commands within commands, such as ssh in ssh, are read so deep. Deeper ones count as programs, because time is
/// limited.
inline constexpr int k_deepest = 3;
/// True if a word, or a part of one, names a program that may be Python: `ssh node1 "cd /job && python train.py"`,
/// `ssh node1 ./train` and `ssh node1 "$CMD"`. `depth` counts the commands around these words.
bool names_some_program(std::span<const std::string> words, int depth);
/// The same for the words of a command: the first is its program.
bool starts_program(std::span<const std::string> words, int depth);
/// True for a builtin of a shell or a tool that reads none of the variables that name caches.
bool is_plain_tool(std::string_view program);

/// Returns the launcher that argv[at] names, if a verb that it needs follows before `end`; nullptr if there is none.
const Launcher* find_launcher(const Argv& argv, std::size_t at, std::size_t end);
/// True if the launcher needs no verb, or one of its verbs follows argv[at].
bool has_verb(const Launcher& launcher, const Argv& argv, std::size_t at, std::size_t end);
/// Returns the file of commands or of variables that one of the words reads, by its row `reads`; empty if there is
/// none.
std::string find_commands_file(const Argv& words);
/// True if words[at] is a launcher, has a row `elsewhere`, or is a plain tool.
bool is_known_command(const Argv& words, std::size_t at);
/// Returns the launcher for `python -m MODULE`; nullptr if there is none.
const Launcher* find_module_launcher(std::string_view module);

/// An option of a launcher on a command line.
struct GivenOption {
  std::string name = {}; ///< canonical name
  std::optional<Means> means = {};
  std::size_t index = 0;       ///< the word with the option's name
  std::size_t value_index = 0; ///< the word with the (last) value; `index` if it is attached
  std::string value = {};      ///< two values are joined by `=`
};

struct OptionsRead {
  std::vector<GivenOption> given;
  std::size_t end = 0; ///< index of the first word that is not an option
  std::string problem; ///< why reading stopped ("`--foo` is not an option of ..."); empty if all options are known
  bool ended_by_option = false; ///< -m or -c, which is given.back(), ended the options
  /// Returns the last given option with this meaning; nullptr if there is none.
  [[nodiscard]] const GivenOption* last(Means means) const;
};

/// Reads the options of `launcher` from argv[begin] up to the first word that is no option, never beyond `limit`. The
/// spellings of argparse, getopt and MPI are all accepted: a launcher that does not know one refuses it by itself. An
/// option that the row does not have is reported as a problem, never guessed.
OptionsRead read_options(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit);

} // namespace sharefs::cachefix

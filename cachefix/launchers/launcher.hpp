#pragma once
// Launchers as a table: what starts a training program, where its own options end, and what it hands on. A launcher is
// a row of cachefix/launchers/rows_*.cpp; options.cpp reads its options, walk.cpp follows the rows down to the user's
// program.
#include "base/argv.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cachefix {

/// How a launcher reads its command line. All of them stop at the first word that is no option.
enum class Syntax {
  argparse,    ///< Python: `--opt v`, `--opt=v`, unique prefixes of long options, `-ov`
  exact,       ///< argparse with allow_abbrev=False, click, clap: no prefixes
  getopt,      ///< GNU getopt_long with "+": prefixes, clusters of short options, a value may start with `-`
  single_dash, ///< MPI: `-np 4` and `--np 4` are one option, no clusters, no `=`
};

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
  assign_list,  ///< NAME=value,NAME,... with ALL and NONE (srun --export)
  unset,        ///< takes NAME out of the environment
  clear,        ///< starts from an empty environment
  module,       ///< the script is a module's name
  no_python,    ///< the script is a program
  run_module,   ///< `-m NAME`: ends the options
  run_text,     ///< `-c TEXT`: ends the options
  command_text, ///< the command is a shell string: this option's value (sbatch --wrap), or the first word (bash -c)
  split_text,   ///< env -S: words inside of one argument
  hostfile,     ///< file with the hosts
  remote,       ///< runs on other hosts (-H hosts)
  container,    ///< runs inside of a container
  information,  ///< prints something, or attaches to a process that runs; --help, --version and --usage always do
};

/// Does the environment of the launcher reach the program on every host?
enum class Carries {
  yes,       ///< same host, or the launcher exports all of it (srun)
  deepspeed, ///< local runs yes; with a hostfile only what .deepspeed_env says
  mpi,       ///< remote ranks only get what -x/-genv names
};

enum class Takes { nothing, value, attached, two };

/// An option of a row.
struct KnownOption {
  std::vector<std::string> names; ///< "-q", "--quiet"; the last is the canonical one; `*` at its end: all that begin so
  Takes takes = Takes::nothing;
  std::optional<Means> means = {};
  friend bool operator==(const KnownOption&, const KnownOption&) = default;
};

struct Launcher {
  std::string_view name = {}; ///< "PROGRAM" or "PROGRAM VERB"
  /// Names of the executable, separated by spaces; `*` at the end stands for anything. Empty: PROGRAM.
  std::string_view programs = {};
  std::string_view modules = {}; ///< Python modules that are this launcher
  /// It is this launcher only with one of these next. Empty: VERB, if there is one.
  std::string_view verbs = {};
  Syntax syntax = Syntax::getopt;
  Tail tail = Tail::command;
  /// Words of "-H/--hostfile=": `=` takes a value, `[=]` may have one that is attached (`--mpi=x`, `-K0`), `==` takes
  /// two;
  /// `--rdzv-{id,conf}=` are several, `-C/--chdir=@directory` says what it means.
  std::string_view options = {};
  std::size_t operands = 0; ///< words between the options and the tail (timeout's duration)
  bool assignments = false; ///< NAME=value words between the options and the tail (env)
  Carries carries = Carries::yes;
  std::string_view default_hostfile = {};    ///< read where the hostfile option is not given and this file exists
  std::string_view export_variable = {};     ///< stands for the assign_list option where that is not given
  std::string_view container_variables = {}; ///< with one of these, `*` as above, it means Means::container
  bool underscores = false;                  ///< `-` and `_` inside of long options are the same
  std::string_view source = {};              ///< where the grammar comes from
};

/// Programs of one kind that run programs where neither this environment nor these paths count.
struct OpaquePrograms {
  std::string_view programs; ///< names, `*` as above, or at the front
  std::string_view does;     ///< what such a program does: "runs its command on another machine"
  std::string_view by = {};  ///< words with one of which it runs something; empty: whatever they are
  bool prefix = false;       ///< it runs the first word behind it that is no option
  bool container = false;    ///< inside of a container, or under another root
};

/// All rows, and the parts that they are joined from.
std::span<const Launcher> launchers();
std::span<const Launcher> prefix_launchers();   ///< env, nice, timeout, conda run, ..., python, bash
std::span<const Launcher> training_launchers(); ///< torchrun, deepspeed, accelerate, ..., mpirun, srun, sbatch
std::vector<KnownOption> options_of(const Launcher& launcher);
std::span<const OpaquePrograms> opaque_programs();
/// Do words of a command, or of a shell text, start a container, or make a launcher do so? It may stand in one word
/// with others.
bool starts_container(std::span<const std::string> words);
/// Builtins of a shell, and tools that read none of the variables that say where caches are.
bool is_plain_tool(std::string_view program);
/// Console scripts that are Python programs, beside those of the rows: they read the caches of Python's libraries.
std::string_view python_programs();

/// Programs that start a command on other machines only, as their names stand in a command line.
std::string_view remote_programs();

/// The row for argv[at], with all words of its verb behind it and none of them at or beyond `end`; nullptr if there is
/// none.
const Launcher* find_launcher(const Argv& argv, std::size_t at, std::size_t end);
/// How many words the launcher's verb has behind argv[at]; nullopt if none of its verbs stands there.
std::optional<std::size_t> verb_length(const Launcher& launcher, const Argv& argv, std::size_t at, std::size_t end);
/// The row for `python -m MODULE`, or for a file `.../torch/distributed/run.py`; nullptr if there is none.
const Launcher* find_module_launcher(std::string_view module);
/// Calls `f` with each word of a list.
template <class F> void each_word(std::string_view list, char separator, F f) {
  while (!list.empty()) {
    const auto end = std::min(list.find(separator), list.size());
    if (end != 0)
      f(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}
/// Is `f` true of one of the words?
template <class F> bool any_word(std::string_view list, char separator, F f) {
  bool found = false;
  each_word(list, separator, [&](std::string_view word) { found = found || f(word); });
  return found;
}
/// True if `name` is one of the words of `list`, where a word may begin or end in `*`.
bool is_listed(std::string_view name, std::string_view list);
/// argparse never takes such a word as a value: it starts with a dash, is no negative number, and has no space.
bool looks_like_option(const std::string& word);

struct GivenOption {
  std::string name = {}; ///< canonical
  std::optional<Means> means = {};
  std::size_t index = 0;       ///< of the word with the option's name
  std::size_t value_index = 0; ///< of the word that holds the (last) value; `index` when attached
  std::string value = {};      ///< the value, or the first of two
  std::string second = {};     ///< the second of two
  bool has_value = false;
};

struct OptionsRead {
  std::vector<GivenOption> given;
  std::size_t end = 0; ///< index of the first word that is not an option
  std::string problem; ///< why reading stopped: "`--foo` is not an option that is known"; empty if all is clear
  std::size_t problem_index = 0;
  bool ended_by_option = false; ///< -m or -c ended the options; it is given.back()
  bool ended_by_dashes = false; ///< a `--` was skipped
  /// The last of them with this meaning; nullptr if there is none.
  [[nodiscard]] const GivenOption* last(Means means) const;
};

/// Reads the options of `launcher` from argv[begin] up to the first non-option, never beyond `limit`. An option that
/// the row does not know is a problem, never a guess.
OptionsRead read_options(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit);

} // namespace sharefs::cachefix

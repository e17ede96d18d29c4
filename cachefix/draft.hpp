#pragma once
// The working state of one sanitize(): what is asked, what is edited. Internal to the room.
#include "cachefix/sanitize.hpp"

#include <algorithm>

namespace sharefs::cachefix {

template <class T> void add_once(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end())
    all.push_back(std::move(one));
}

/// What happens to one word of the original argv.
struct WordEdit {
  std::optional<std::string> text; ///< its new text
  bool dropped = false;
  std::vector<std::string> before; ///< new words in front of it
};

/// Where the value of a flag stands, which decides how it is changed.
enum class Spot {
  word,     ///< `--key value`, `--key=value`
  pair,     ///< `key=value`: may stand against a value in a file
  file,     ///< in a file that is read besides: an override goes into the command line
  document, ///< in the file that is read instead of a command line: a changed copy takes its place
};

/// One flag of a program, among its arguments or in a file that they name.
struct Occurrence {
  Spot spot = Spot::word;
  std::string flag;            ///< as spelled, without `=value`
  std::size_t name_index = 0;  ///< of the word with the flag, or with the file's name
  std::size_t value_index = 0; ///< of the word with the value, or with the file's name
  std::size_t value_begin = 0; ///< offset of the value in that word
  std::string value;
  AppliedRule rule;
  std::size_t insert_at = 0;  ///< file: the override goes in front of this word
  std::string override_start; ///< file: `key=`, to which the value is attached, or `--key`, which it follows
  std::string file;           ///< document: the path of the original
};

class Draft {
 public:
  Draft(const Argv& words, const Facts& known, const Rules& given) : argv(words), facts(known), rules(given) {}

  const Argv& argv;
  const Facts& facts;
  const Rules& rules;
  Sanitized out;
  std::map<std::size_t, WordEdit> edits;
  bool carries = true;    ///< inside of shell text: variables reach the shell
  bool alone = true;      ///< no other program would see the variables that this one needs
  bool can_write = true;  ///< false: nothing may rest on a new file or link (a script that runs elsewhere, later)
  bool elsewhere = false; ///< inside of shell text: the shell runs on other hosts
  int depth = 0;          ///< of shell text inside of shell text

  /// The value of a variable as the program will see it; nullopt: not set or empty.
  [[nodiscard]] std::optional<std::string> variable(const Program& program, std::string_view name) const;
  [[nodiscard]] std::string home(const Program& program) const;
  /// A value as the program would resolve it: `~`, relative to its working directory; nullopt if it is no path (empty,
  /// a URL). `..` stays: it is resolved through links.
  [[nodiscard]] std::optional<std::string> absolute(const Program& program, const std::string& value) const;
  /// False: nothing of this host is shared, or that is not known yet and the question is noted.
  bool any_shared();
  /// Where a path lies; nullptr: not known yet, the question is noted.
  const sys::Entry* place(const std::string& path);
  const std::optional<std::string>* text(const std::string& path);
  const std::optional<std::vector<std::string>>* listing(const std::string& path);
  /// Says once what an earlier launch left behind in a shared cache.
  void report_leftovers(const std::string& path);
  const std::optional<std::string>* tree(const std::string& shell_text);
  /// The node-local directory that stands for a shared path, noted to be made; nullopt: not known yet or there is none.
  std::optional<std::string> local_for(const std::string& shared_path);

  void diagnose(Severity severity, std::string code, const std::string& subject, std::string message,
                std::string hint = {});
  void keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
            std::string reason);
  /// Replaces `length` bytes at `begin` of a word, on top of earlier edits of the same word that lie before it.
  void replace(std::size_t index, std::size_t begin, std::size_t length, const std::string& text);
  [[nodiscard]] Argv final_argv() const;

  /// Gives the program a variable: in the word that assigns it, else in the environment.
  void set_variable(const Program& program, const std::string& name, const std::string& value, CacheClass cache_class,
                    const std::string& rule, const std::string& reason);
  void unset_variable(const Program& program, const std::string& name, const std::string& rule,
                      const std::string& reason);
};

/// All options among argv[begin, end) that have a value, `--key value` and `--key=value`, in their order; without a
/// rule yet.
std::vector<Occurrence> read_flags(const Argv& argv, std::size_t begin, std::size_t end);

using Occurrences = std::vector<const Occurrence*>;
/// One flag with all its occurrences; the last is the one that counts for argparse. `built_once`: the setting by which
/// one node builds the datasets for all.
void transform_flag(Draft& draft, const Walk& walk, const Program& program, const Occurrences& all,
                    const std::optional<Occurrence>& built_once);

/// sanitize() on a draft: all of its parts.
void sanitize_draft(Draft& draft);
/// Its parts.
void sanitize_shell_program(Draft& draft, const Walk& walk, const Program& program);
void sanitize_flags(Draft& draft, const Walk& walk, const Program& program, const Framework* framework);
void sanitize_variables(Draft& draft, const Walk& walk, const Program& program);
/// Does it (also) run on hosts where sharefs is not? Notes a question where that depends on a file.
bool runs_elsewhere(Draft& draft, const Walk& walk, const Program& program);
/// Can variables be made to reach the program on every host? nullopt: not known yet, a question is noted.
std::optional<bool> can_carry(Draft& draft, const Walk& walk, const Program& program);
/// Does the launcher start the program on other hosts, as its hostfile or list of hosts says? Notes a question where
/// that depends on a file that is not known yet.
bool names_hosts(Draft& draft, const ChainLink& link);
/// True if a value can stand in .deepspeed_env, -x and --export lists as it is.
bool is_plain_value(const std::string& value);
/// Makes the variables that were set reach the programs: words for env, srun, mpirun and micromamba, a file for
/// deepspeed. What cannot be carried is diagnosed.
void propagate(Draft& draft, const Walk& walk);

} // namespace sharefs::cachefix

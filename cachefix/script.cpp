#include "cachefix/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/words.hpp"

#include <algorithm>
#include <climits>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_prints = "echo printf cat sed grep envsubst head tail sort";
constexpr std::string_view k_hold_texts =
    "for set trap parallel done mapfile readarray source ."; // any of their words may be run
constexpr std::string_view k_make = "make gmake";
constexpr std::string_view k_exports = "export declare typeset readonly local setenv";
constexpr std::string_view k_changes = "unset unsetenv unexport setenv read mapfile for select set printf";
constexpr std::string_view k_script_names = "*.sh *.bash *.sbatch *.slurm *.env";
constexpr std::string_view k_no_commands = "*.json *.yaml *.yml *.toml *.csv *.md *.log /dev/* <(*"; // names of files
constexpr std::string_view k_letters = // of names; `@` is one, too
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@";
constexpr int k_deepest_text = 4;                                 // texts in texts
constexpr std::size_t k_most_in_group = 64;                       // commands of a group or a pipe whose output is read
constexpr std::size_t k_longest_value = 1024, k_most_words = 128; // of one command
constexpr std::size_t k_most_expanded = 100'000; // words in one script; then variables are no longer expanded

/// True if the word is a text of several words; `$(...)` is one.
bool is_text(const std::string& word) {
  const auto begin = is_listed(word, "$(* <(* `*") ? std::min(word.find_last_of(")`"), word.size()) : 0;
  return word.find_first_of(" \t\n", begin) != std::string::npos;
}

bool is_assignment(const std::string& word) {
  return word.find('=') != std::string::npos && assigns_variable(word.substr(0, word.find_first_of("+[=")) + "=");
}

/// True if one of these names stands in the text as a whole name.
bool names_one(std::string_view text, const std::set<std::string, std::less<>>& names) {
  bool found = false;
  for (auto at = text.find_first_of(k_letters); at < text.size() && !found; at = text.find_first_of(k_letters, at)) {
    const auto end = std::min(text.find_first_not_of(k_letters, at), text.size());
    found = names.contains(text.substr(at, end - at));
    at = end;
  }
  return found;
}

/// True if a file, a pipe or another command gets what this command prints, alone or in a group.
bool is_output_kept(const WordLists& lists, std::size_t at) {
  bool kept = !lists[at].to.empty();
  for (std::size_t i = at + 1; i < std::min(lists.size(), at + k_most_in_group) && !kept; ++i)
    kept = (lists[i].words.empty() || is_listed(lists[i].words[0], "} done")) && !lists[i].to.empty();
  return kept;
}

/// Returns how these words start a script. A script that sbatch or bsub gets is `submitted` only if no option on the
/// command line replaces its directives.
Started how_started(const Argv& argv) {
  const bool submits = any_listed(argv, "sbatch bsub */sbatch */bsub");
  return submits && !any_listed(argv, "--export* -env") ? Started::submitted : Started::run;
}

class ScriptReader {
 public:
  ScriptReader(Facts& facts, const std::string& name, const std::string& path) : m_facts(facts) {
    m_variables["0"] = name;
    m_variables["PATH"] = path;
  }

  /// Reads a text. `is_value`: it is the value of a variable, which may not be a command.
  void read(const std::string& text, int first_line, Started how = Started::run, bool is_value = false) {
    if (m_texts == k_deepest_text)
      return;
    ++m_texts;
    m_submits = m_submits || names_one(text, {"sbatch", "bsub"});
    for (const char* const pattern : {"^PYTHON", "PYTHON[", "-v PYTHON"})
      m_matches_path = m_matches_path || text.find(pattern) != std::string::npos;
    WordLists lists = split_into_lists(text);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      WordList& list = lists[i];
      list.line += first_line - 1;
      if (i > 0)
        add_input(list, lists[i - 1]);
      if (list.words.empty() || !is_listed(list.words[0], "#SBATCH #BSUB #!*"))
        read_list(list, is_value, is_output_kept(lists, i));
      else if (how == Started::submitted || list.words[0].starts_with("#!"))
        read_directive(list);
    }
    --m_texts;
  }

  /// Reads the scripts and the text of one program that a command starts. A loss by the command's own words is not
  /// reported here.
  void read_started(const Launch& launch, const Program& program, int line) {
    const Argv& words = launch.argv;
    const ChainLink* const link = program.chain.empty() ? nullptr : program.chain.back();
    const std::string last = link == nullptr ? "" : link->launcher->name;
    const Started how = how_started(words);
    const std::string commands = find_commands_file(words);
    read_file(commands, Started::run);
    for (const char* const name : {"GNUmakefile", "makefile"}) // make prefers these
      if (is_listed(words[0], k_make) && commands.ends_with("Makefile"))
        read_file(commands.substr(0, commands.size() - 8) + name, Started::run);
    if (is_listed(words[0], k_make))
      (void)read_changes(words, line);
    const Argv behind{words.begin() + static_cast<std::ptrdiff_t>(program.index) + 1, words.end()};
    if (program.kind == ProgramKind::shell && !behind.empty())
      m_variables["@"] = join({behind.begin() + 1, behind.end()}, " ");
    if (program.kind == ProgramKind::shell || (is_text(program.name) && program.kind != ProgramKind::text))
      return read(program.name, line, how);
    const bool reads_input = link != nullptr && link->index == program.index; // a shell, or Python
    if ((reads_input && is_listed(last, "bash sbatch bsub")) || program.name == "/dev/stdin")
      for (const std::string& file : {launch.start.input, behind.empty() ? "" : behind.back()})
        read_file(file, how);
    if (is_plain_tool(program) || program.name.starts_with("--")) // an option that is not known
      return;
    report_lost_path();
    const bool is_file = program.kind == ProgramKind::file || program.name.find('/') != std::string::npos ||
                         is_listed(program.name, k_script_names) || launch.read_start(program).starts_with("#!");
    if (is_file && (!program.python || !is_listed(last, "python torchrun deepspeed accelerate")))
      read_file(program.name, how);
    if (is_file && !program.python && !behind.empty() && is_known_command(behind, 0))
      (void)ask(behind, line); // the script may run "$@"
    if (!reads_input)
      add_program(launch, program, line);
  }

  ScriptReport finish(Started how) {
    if (how == Started::sourced) // the shell that sources it starts programs afterwards
      report_lost_path();
    if (m_default && !m_keeps_tested)
      m_out.defaults.push_back(*m_default);
    std::ranges::stable_sort(m_out.losses, {}, &Mention::line);
    return std::move(m_out);
  }

 private:
  /// Reads `#SBATCH -n 2` as `sbatch -n 2 job.sh`, and `#!/usr/bin/env -S python3 -I` as `python3 -I job.sh`.
  void read_directive(WordList& list) {
    Argv& words = list.words;
    words[0] = words[0] == "#SBATCH" ? "sbatch" : words[0] == "#BSUB" ? "bsub" : words[0].substr(2);
    words.erase(words.begin(), std::ranges::find_if_not(words, [](const std::string& word) {
                  return is_listed(word, "*/env -S") || word.empty();
                }));
    words.emplace_back("job.sh");
    (void)ask(words, list.line);
  }

  /// Adds what `before` prints to the words of ssh and the like behind a pipe, which may run it.
  static void add_input(WordList& list, const WordList& before) {
    const Row* const known = list.words.empty() ? nullptr : find_opaque(list.words[0]);
    if (before.to == "|" && before.words.size() > 1 && is_listed(before.words[0], k_prints) && known != nullptr &&
        !known->has("container"))
      list.words.insert(list.words.end(), before.words.begin() + 1, before.words.end());
  }

  void read_list(WordList& list, bool is_value, bool prints) {
    Argv& words = list.words;
    note_test(list);
    take_front(words);
    const auto before = m_lost;
    const bool remains = read_changes(words, list.line);
    const auto changed = m_lost;
    words = expand(words);
    words.erase(words.begin(), std::ranges::find_if_not(words, &is_assignment));
    if (is_value && !words.empty() && !is_known_command(words, 0))
      read_texts(words, list.line);
    else if (!words.empty())
      read_command(list, prints);
    if (!remains && m_lost == changed) // `PYTHONPATH= git pull` changes it for one command
      m_lost = before;
  }

  /// Takes words of a shell or of make away from the front of a command.
  static void take_front(Argv& words) {
    const auto command =
        std::ranges::find_if_not(words, [](const std::string& word) { return is_listed(word, words_of("keywords")); });
    const bool empties = command != words.begin() && command != words.end() && *command == "-c"; // exec -c
    words.erase(words.begin(), command + (empties ? 1 : 0));
    if (words.size() > 3 && words[0] == "function" && words[2] == "{")
      words.erase(words.begin(), words.begin() + 3);
    if (empties)
      words.insert(words.begin(), {"env", "-i"});
    const bool assigns = words.size() > 1 && (words[1] == "export" || is_assignment(words[1]) ||
                                              (words.size() > 2 && is_listed(words[2], "= := ::=")));
    if (assigns && words[0].ends_with(':')) // make: for one target
      words.erase(words.begin());
    if (!words.empty() && words[0].size() > 1 && // make: do not print the command, or ignore its failure
        (words[0][0] == '@' || (words[0][0] == '-' && is_assignment(words[0].substr(1)))))
      words[0].erase(0, 1);
    if (words.size() > 2 && is_listed(words[words.size() - 2], "= := ::=")) { // make: export A := 1
      words[words.size() - 3] += "=" + words.back();
      words.resize(words.size() - 2);
    }
  }

  /// Notes a test of PYTHONPATH. What is done up to the end of its line, or of the `if`, is done with regard to it.
  void note_test(const WordList& list) {
    if (any_listed(list.words, "[ [[ test $?PYTHONPATH") && names_one(join(list.words, " "), {"PYTHONPATH"}) &&
        !contains(list.words, "!="))
      m_tested_to = is_listed(list.words[0], "if $?PYTHONPATH") ? INT_MAX : std::max(m_tested_to, list.line);
    else if (m_tested_to == INT_MAX && any_listed(list.words, "fi endif"))
      m_tested_to = list.line;
  }

  /// Reads what a command changes. True if the change remains behind the command.
  bool read_changes(const Argv& words, int line) {
    const auto command = std::ranges::find_if_not(words, &is_assignment);
    const std::string first = command == words.end() ? "" : *command;
    const bool exports = first.empty() || is_listed(first, k_exports);
    const bool changes = is_listed(first, k_changes) || (exports && contains(words, "-n"));
    for (std::size_t i = 0; i + 1 < words.size(); ++i) // make
      if (words[i] == "PYTHONPATH" && words[i + 1] == "?=")
        note_default(line);
    if (!words.empty() && words.back().starts_with("PYTHONPATH?="))
      note_default(line);
    for (auto word = words.begin(); word != words.end(); ++word) {
      const auto sign = word->starts_with("${") ? word->find(":=") : std::string::npos;
      const bool by_default = sign != std::string::npos && word->ends_with('}');
      const std::string given =
          !by_default ? *word : word->substr(2, sign - 2) + "+=" + word->substr(sign + 2, word->size() - sign - 3);
      if (by_default && given.starts_with("PYTHONPATH+=") && given != "PYTHONPATH+=")
        note_default(line);
      if (is_assignment(given) && (by_default || word < command || exports || is_listed(first, k_make)))
        read_assignment(given, line);
    }
    for (auto word = command; word != words.end() && changes; ++word) {
      const bool named = is_listed(*word, "PYTHONPATH PYTHON{* {PYTHONPATH,*") ||
                         (first == "unset" && word->starts_with("${!PYTHON")) ||
                         (first == "unset" && m_matches_path && word->starts_with('$'));
      if (named && !names_path(join({word + 1, words.end()}, " ")) &&
          !(line <= m_tested_to && is_listed(first, "set setenv")))
        lose_path(line, first + " PYTHONPATH");
    }
    return exports || changes;
  }

  void read_assignment(const std::string& word, int line) {
    static const auto k_rules = variable_rules();
    const std::string name = word.substr(0, word.find_first_of("+[=")), value = word.substr(word.find('=') + 1);
    const bool adds = word[word.find('=') - 1] == '+';
    const bool tested = line <= m_tested_to && !value.empty();
    m_keeps_tested = m_keeps_tested || (name == "PYTHONPATH" && tested && names_path(value)); // in the other branch
    if (name == "PYTHONPATH" && ((tested && !adds && !names_path(value)) || has_default(value)))
      note_default(line);
    if (name == "SHAREFS_GUARD" && value == "0")
      add_loss(line, {1, "SF407", "SHAREFS_GUARD=0", "switches the guard off"});
    if (std::ranges::find(k_rules, name, &CacheRule::name) != k_rules.end() || names_cache(name))
      m_out.caches.push_back({line, "", name, value});
    if (name == "PYTHONPATH" && names_one(value, m_keep_path))
      m_lost.reset(); // its old value was saved in a variable and is set again
    else if (name == "PYTHONPATH" && !adds && line > m_tested_to && !names_path(value))
      lose_path(line, "PYTHONPATH=");
    else if (name != "PYTHONPATH" && names_path(value))
      m_keep_path.insert(name);
    const std::size_t losses = m_out.losses.size();
    if (is_text(value))
      read(value, line, Started::run, true);
    const bool named = m_out.losses.size() > losses, itself = names_one(value, {name});
    Argv words;
    for (WordList& list : split_into_lists(value)) // also those of an array
      if (list.to != "|")
        std::ranges::move(list.words, std::back_inserter(words));
    const std::string more = join(expand(words), " ");
    std::string& all = m_variables[name]; // a command gets the words of all branches
    all = (itself || all.empty() ? "" : all + " ") + (named || more.find("$(") != std::string::npos ? "" : more);
    all.resize(std::min(all.size(), k_longest_value));
  }
  /// True if the text names PYTHONPATH, itself or by a variable. Such a value keeps the guard's directory.
  [[nodiscard]] bool names_path(std::string_view text) const {
    return names_one(text, {"PYTHONPATH"}) || names_one(text, m_keep_path);
  }
  /// True for `${PYTHONPATH:-src}` and `${PYTHONPATH-src}`, and not for `${PYTHONPATH:-}`.
  static bool has_default(const std::string& value) {
    const auto at = value.find("${PYTHONPATH");
    const std::string rest = at == std::string::npos ? "" : value.substr(at + 12, 3);
    return is_listed(rest, ":-* -*") && !is_listed(rest, ":-} -}*");
  }
  void note_default(int line) {
    if (!m_default)
      m_default = Mention{line, "SF407", "PYTHONPATH",
                          "is set only if it was not set before, so it is left alone and what it starts is not guarded",
                          "set PYTHONPATH in front of `sharefs run`, or write `PYTHONPATH=...:$PYTHONPATH`"};
  }
  void lose_path(int line, const std::string& subject) {
    m_lost = Mention{line, "SF407", subject, "changes PYTHONPATH, so what it starts is not guarded"};
  }
  /// Reports a loss of PYTHONPATH, because a program is started now.
  void report_lost_path() {
    if (const auto lost = std::exchange(m_lost, std::nullopt))
      add_loss(lost->line, *lost);
  }

  void read_command(const WordList& list, bool prints) {
    const Argv& words = list.words;
    const std::string& first = words[0];
    const std::string second = words.size() > 1 ? words[1] : "";
    const bool tool = is_plain_tool(first) && find_launcher(words, 0, words.size()) == nullptr;
    if (is_listed(first, "cd pushd"))
      m_directory = second.find("$0") == std::string::npos ||
                            m_variables["0"].empty() // else it begins at the directory of this script
                        ? expand_start(second)
                        : join_path(parent_path(m_variables["0"]), expand_start(second));
    else if (first == "set" && second == "--")
      m_variables["@"] = join({words.begin() + 2, words.end()}, " ");
    if (first == "eval")
      read(join({words.begin() + 1, words.end()}, " "), list.line);
    else if (is_listed(first, k_hold_texts))
      read_texts(words, list.line, is_listed(first, "for set trap parallel") ? Started::run : Started::sourced);
    const bool copies = is_listed(first, "cp mv") && is_listed(words.back(), k_script_names);
    if (copies || first == "tee" || (prints && is_listed(first, k_prints)))
      read_printed(list);
    if (is_listed(first, "source .") && !is_listed(second, words_of("settings")))
      report_lost_path(); // the script may start programs
    if (is_listed(first, "source ."))
      read_file(second, Started::sourced);
    else if (is_listed(first, "done mapfile readarray") && words.size() > 1)
      read_file(words.back(), Started::sourced);
    if (tool)
      return;
    const Walk walked = ask(words, list.line);
    if (walked.programs.empty()) // one is started, but elsewhere, or by words that stand behind these somewhere else
      report_lost_path();
    if (!walked.elsewhere && !any_listed(words, "python*"))
      read_texts(words, list.line, how_started(words), true);
    for (const Program& program : walked.programs)
      read_started({words, walked, m_start, m_facts, m_rules}, program, list.line);
  }

  /// Reads those of the words that are texts or scripts, because any of them may be run; a here-document certainly is.
  void read_texts(const Argv& words, int line, Started how = Started::run, bool only_documents = false) {
    for (const std::string& word : words)
      if (is_text(word) && (word[0] == '\n' || !only_documents))
        read(word.starts_with('[') ? word.substr(word.find('=') + 1) : word, line, how, word[0] != '\n');
      else if (!only_documents && is_listed(word, k_script_names))
        read_file(word, how);
  }

  /// Reads what a command prints or copies, because something may run it: its own text, or the scripts that it names.
  void read_printed(const WordList& list) {
    const Argv& words = list.words;
    const Started how = m_submits ? Started::submitted : Started::run;
    if (words[0] != "tee" && (is_listed(list.to, k_no_commands) || list.to.ends_with(".py")))
      return;
    if (is_listed(words[0], "echo printf")) {
      const bool format = words.size() > 2 && words[1].starts_with('%'); // of printf
      std::string text = join({words.begin() + (format ? 2 : 1), words.end()}, " ");
      for (auto at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at))
        text.replace(at, 2, "\n");
      read(text, list.line, how, true);
    } else {
      read_texts(words, list.line, how, words[0] != "cat");
      if (is_listed(words[0], "cat cp envsubst mv sed")) // the file that is copied, whatever its name
        read_file(words[words.size() - (is_listed(words[0], "cp mv") && words.size() > 1 ? 2 : 1)], how);
    }
    for (const std::string& word : words)
      if (is_listed(word, k_script_names))
        read_file(word, how);
  }

  /// Notes a file of commands. It may lie in the directory of the last `cd`, or beside this script.
  void read_file(const std::string& name, Started how) {
    const std::string path = expand_start(name);
    if (is_listed(path, "*.env *.envrc"))
      how = Started::sourced;
    if (path.empty() || path[0] == '-' || is_text(path) || is_listed(path, k_no_commands))
      return;
    add_once(m_out.scripts, {path, how});
    if (!m_directory.empty())
      add_once(m_out.scripts, {join_path(m_directory, path), how});
    if (const std::string& self = m_variables["0"]; name.starts_with('$') && self.find('/') != std::string::npos)
      add_once(m_out.scripts, {join_path(parent_path(self), path), how});
  }

  /// Reports the word that takes the guard away from what these words start. Words that are only launchers, as in
  /// LAUNCH="srun --export=NONE", are in front of a program somewhere else.
  Walk ask(Argv words, int line) {
    Walk walked = walk(words, "/");
    const bool only_launchers = walked.programs.empty() && !walked.elsewhere && !walked.chain.empty();
    if (only_launchers) {
      words.insert(words.end(), {"python", "t.py"});
      walked = walk(words, "/");
    }
    const Mention loss = find_loss({words, walked, m_start, m_facts, m_rules});
    const auto keeps = [&](const std::string& word) {
      const auto at = word.find("PYTHONPATH=");
      return at != std::string::npos && names_path(word.substr(at + 11));
    };
    if (!(only_launchers && loss.code != "SF407") &&
        !(loss.subject == "PYTHONPATH=" && std::ranges::any_of(words, keeps)))
      add_loss(line, loss);
    if (only_launchers)
      walked.programs.clear();
    return walked;
  }

  void add_loss(int line, Mention loss) {
    loss.line = line;
    const bool again = std::ranges::any_of(m_out.losses, [&](const Mention& one) {
      return one.code == loss.code && one.subject == loss.subject && one.line == line;
    });
    if (!loss.code.empty() && !again)
      m_out.losses.push_back(std::move(loss));
  }

  /// Reports a program and the caches that its options name.
  void add_program(const Launch& launch, const Program& program, int line) {
    std::string chain;
    for (const ChainLink& link : launch.walk.chain)
      chain += (chain.empty() ? "" : " ") + link.name;
    if (program.python || is_listed(program.name, k_script_names) || !chain.empty())
      add_once(m_out.programs, {line, "", program.name, chain});
    const Row* const framework = framework_of(program, launch.argv);
    for (const Assignment& one : program_options(launch.argv, program))
      if (const auto rule = rule_for_flag(program, framework, one.name, {}); rule && is_moved(rule->cache_class))
        add_once(m_out.caches, {line, "", one.name, one.value});
  }

  /// Replaces `$RUN`, `${RUN}` and `${RUN[@]}`, alone or in front of a path, by the words of the variable, and
  /// `${RUN:-words}` and the like by those in the braces; `$(which python)` by the name.
  [[nodiscard]] Argv expand(const Argv& words) {
    Argv all;
    for (const std::string& word : words) {
      if (is_listed(word, "$(which* `which* $(command*")) {
        const std::string name = split_words(word).back();
        all.push_back(name.substr(0, name.find_first_of(")`")));
        continue;
      }
      const std::size_t begin = word.starts_with("${") ? 2 : 1;
      const auto end = std::min(word.find_first_not_of(k_letters, begin), word.size());
      const auto close = begin == 2 ? word.find('}') : end - 1;
      const std::string rest = word.starts_with('$') && close < word.size() ? word.substr(close + 1) : "$";
      const auto sign = std::min(word.find_first_of("-=+%#/", end), word.size());
      const auto known = m_variables.find(word.substr(std::min(begin, word.size()), end - begin));
      Argv found;
      if (known != m_variables.end() && !known->second.empty() &&
          (sign >= close || is_listed(word.substr(sign, 1), "- =")))
        found = split_words(known->second);
      else if (sign < close && is_listed(word.substr(sign, 1), "- = +"))
        found = split_words(word.substr(sign + 1, close - sign - 1));
      const bool too_many = all.size() > k_most_words || m_expanded > k_most_expanded;
      if (found.empty() || too_many || !(rest.empty() || rest[0] == '/'))
        found = {word};
      else if (!rest.empty()) // a path: the last value counts
        found = {found.back() + rest};
      m_expanded += found.size();
      std::ranges::move(found, std::back_inserter(all));
    }
    return all;
  }

  /// Replaces the variable in front of a path by its value. One that is not known, and `$(dirname "$0")`, are taken
  /// away, so `$HERE/a.sh` becomes `a.sh`. Empty if other variables remain.
  [[nodiscard]] std::string expand_start(const std::string& name) {
    std::string path = expand({name}).back();
    if (const auto end = path.find_last_of(")}"); path.starts_with('$'))
      path.erase(0, std::min(path.find('/', end == std::string::npos ? 0 : end), path.size() - 1) + 1);
    return path.find_first_of("$`") == std::string::npos ? path : "";
  }

  Facts& m_facts;
  std::string m_directory; ///< of the last `cd`
  Start m_start{{}, "/", {}};
  Rules m_rules{{}, false, Guard()};              // with a guard, because only then a loss counts
  Environment& m_variables = m_start.environment; ///< variables of the text, with the words of all their values
  std::set<std::string, std::less<>> m_keep_path; ///< those with PYTHONPATH in their value
  std::size_t m_expanded = 0;                     ///< words of commands so far, after expand()
  int m_texts = 0;                                ///< texts around the present command
  int m_tested_to = 0;                            ///< the last line on which `[ -z "$PYTHONPATH" ]` or the like counts
  bool m_matches_path = false;                    ///< a pattern of names in the text may match PYTHONPATH
  bool m_submits = false;                         ///< the text submits a script, perhaps one that it writes
  std::optional<Mention> m_default;               ///< the first default of PYTHONPATH
  bool m_keeps_tested = false;                    ///< a test of PYTHONPATH has a branch that keeps it
  std::optional<Mention> m_lost;                  ///< the command that lost PYTHONPATH, until a program is started
  ScriptReport m_out;
};

} // namespace

ScriptReport read_script(const std::string& text, Facts& facts, const NamedScript& script, const std::string& path) {
  ScriptReader reader(facts, script.name, path);
  reader.read(text, 1, script.how);
  return reader.finish(script.how);
}

ScriptReport read_program(const Launch& launch, const Program& program) {
  ScriptReader reader(launch.facts, "", launch.variable(program, "PATH").value_or(""));
  reader.read_started(launch, program, 1);
  return reader.finish(Started::run);
}

} // namespace sharefs::cachefix

#include "cachefix/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/script_path.hpp"

#include <algorithm>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_prints = "echo printf cat tee sed grep envsubst head tail sort";
constexpr std::string_view k_run_input = "xargs parallel bsub qsub at batch";
constexpr std::string_view k_read_lines = "done read mapfile readarray";
constexpr std::string_view k_no_commands = "*.py *.json *.yaml *.yml *.toml *.csv *.md *.log /dev/*"; // names of files
constexpr std::size_t k_most_prefix = 16; // words of a variable in front of a program
constexpr int k_deepest_text = 4;         // texts within texts: bash -c in bash -c

bool is_script_name(const std::string& word) {
  return is_listed(word, "*.sh *.bash *.sbatch *.slurm") && word.find('$') == std::string::npos;
}

/// True if the word is a text of several words.
bool is_text(const std::string& word) {
  return word.find(' ') != std::string::npos && !is_substitution(word);
}

/// Returns how these words start a script. A script that sbatch or bsub gets is `submitted` only if no option on the
/// command line replaces its directives.
Started how_started(const Argv& argv) {
  const bool submits = any_listed(argv, "sbatch bsub */sbatch */bsub");
  return submits && !any_listed(argv, "--export* -env") ? Started::submitted : Started::run;
}

/// Returns the file of commands that make, xargs, parallel or srun reads; empty if there is none.
std::string find_commands_file(const Argv& argv) {
  const auto command = std::ranges::find_if(
      argv, [](const auto& word) { return is_listed(base_name(word), "make gmake xargs parallel srun"); });
  if (command == argv.end())
    return {};
  const bool make = base_name(*command).ends_with("make");
  std::string file = make ? "Makefile" : "", directory;
  for (auto word = command + 1; word != argv.end(); ++word) {
    const auto equals = word->find('=');
    const std::string name = make && !word->starts_with("--") ? word->substr(0, 2) : word->substr(0, equals);
    std::string* const named = is_listed(name, make ? "-f --file" : "-a --arg-file :::: --multi-prog") ? &file
                               : make && is_listed(name, "-C --directory")                             ? &directory
                                                                                                       : nullptr;
    if (named != nullptr && name != *word) // -Cdir, --file=x
      *named = word->substr(name.size() + (equals == name.size() ? 1 : 0));
    else if (named != nullptr && word + 1 != argv.end())
      *named = *++word;
  }
  return directory.empty() ? file : join_path(directory, file);
}

/// Returns the words behind the name of a script, or behind a text and its $0.
Argv words_behind(const Launch& launch, const Program& program) {
  const std::size_t at = program.index + (program.kind == ProgramKind::shell ? 2 : 1);
  return {launch.argv.begin() + static_cast<std::ptrdiff_t>(std::min(at, launch.argv.size())), launch.argv.end()};
}

/// True if the program is a shell or a batch system that reads its commands from stdin.
bool reads_input(const Launch& launch, const Program& program) {
  const auto links = launch.walk.links(program);
  const Tail tail = links.empty() ? Tail::command : links.back().get().launcher->tail;
  return is_listed(program.name, "/dev/stdin /dev/fd/*") ||
         (program.kind == ProgramKind::program && (tail == Tail::shell || tail == Tail::batch) &&
          program.index == links.back().get().index);
}

class ScriptReader {
 public:
  ScriptReader(Facts& facts, const std::string& name, const Argv& arguments) : m_facts(facts) {
    if (name.find('/') != std::string::npos)
      m_path.assign("0", name, 1);
    m_path.assign("@", join(arguments, " "), 1);
  }

  void read(const std::string& text, int first_line, int depth, Started how = Started::run) {
    if (depth > k_deepest_text || text.empty())
      return;
    Commands commands = commands_of(text);
    const std::size_t open = m_open.size();
    m_path.note_name_lists(commands);
    m_submits = m_submits || std::ranges::any_of(commands, [](const Command& one) {
                  return how_started(one.words) == Started::submitted;
                });
    for (std::size_t i = 0; i < commands.size(); ++i) {
      Command& command = commands[i];
      command.line += first_line - 1;
      m_output_runs = any_listed(command.words, k_prints) && is_output_run(commands, i);
      if (command.is_array)
        assign_array(command.words, command.line, depth);
      else if (!command.is_directive)
        read_command(command, depth);
      else if (how == Started::submitted) // else the directive is only a comment
        add_loss(command.line, find_loss(launch_of(command.words, walk(command.words, "/"))));
      const char behind = command.is_array ? ';' : command.behind;
      if (behind == '(')
        m_path.begin_subshell();
      else if (behind == ')')
        m_path.end_subshell();
      if (behind == '(' || behind == '$' || behind == '<')
        m_open += behind;
      else if (!m_open.empty() && (behind == ')' || behind == '`'))
        m_open.pop_back();
    }
    m_open.resize(std::min(open, m_open.size())); // a text may leave some open
  }

  /// Reads the scripts and the input of one program that a command starts. A loss by the command's own words is not
  /// reported here.
  void read_started(const Launch& launch, const Program& program, const Command& command, int depth) {
    const Argv& words = launch.argv;
    read_file(find_commands_file(words));
    if (program.kind == ProgramKind::shell)
      return read(program.name, command.line, depth + 1);
    if (reads_input(launch, program))
      return read_input(command, how_started(words), depth);
    if (is_plain_tool(program) || program.name.starts_with('-')) // a name with `-` is an option that is not known
      return;
    report_path_loss();
    const bool is_file = program.kind == ProgramKind::file || program.name.find('/') != std::string::npos ||
                         is_script_name(program.name) || launch.read_start(program).starts_with("#!");
    if (!program.python && is_file)
      read_file(program.name, how_started(words), words_behind(launch, program));
    add_program(launch, program, command.line);
  }

  ScriptReport finish(Started how) {
    if (how == Started::sourced) // the shell that sources it starts programs afterwards
      report_path_loss();
    std::ranges::stable_sort(m_out.losses, {}, &Mention::line);
    return std::move(m_out);
  }

 private:
  [[nodiscard]] Launch launch_of(const Argv& words, const Walk& walked) const {
    return {words, walked, m_start, m_path.environment(), m_facts, m_rules};
  }

  void read_command(Command& command, int depth) {
    Argv& words = command.words;
    const std::string keyword = words.empty() ? "" : words.front();
    m_path.note_test(words, command.behind);
    words.erase(words.begin(), std::ranges::find_if_not(
                                   words, [](const auto& word) { return is_listed(word, words_of("keywords")); }));
    if (keyword == "exec" && !words.empty() && words.front() == "-c") // bash(1): with an empty environment
      words.insert(words.erase(words.begin()), {"env", "-i"});
    if (!words.empty() && words.front().starts_with('@') && words.front().size() > 1) // make: do not print the command
      words.front().erase(0, 1);
    if (words.size() > 2 && is_listed(words[words.size() - 2], "= := ::=")) { // make: export A := 1
      words[words.size() - 3] += "=" + words.back();
      words.resize(words.size() - 2);
    }
    for (const std::string& word : words) // as in `: ${RUN:=srun --export=NONE}`; PYTHONPATH has the guard's value
      if (const auto sign = word.find(":="); word.starts_with("${") && word.ends_with('}') &&
                                             sign != std::string::npos && !word.starts_with("${PYTHONPATH"))
        read_assignment({.name = word.substr(2, sign - 2), .value = word.substr(sign + 2, word.size() - sign - 3)},
                        command.line);
    // Words are expanded before assignments are read: a text such as bash -c "$LAUNCH python ..." has them in a
    // variable.
    words = m_path.expand(words);
    m_path.begin_subshell(); // `PYTHONPATH= git pull` changes it for one command
    const auto assigned = m_path.take_assignments(words, command.line);
    for (const Assignment& one : assigned)
      read_assignment(one, command.line);
    read_expanded(command, depth);
    m_path.end_subshell(!assigned.empty() && !words.empty() && !PythonPath::sets_variables(words[0]));
  }

  void read_expanded(Command& command, int depth) {
    Argv& words = command.words;
    if (words.empty())
      return;
    const std::string first = words.front();
    if (is_listed(first, "cd pushd") && words.size() == 2)
      m_path.change_directory(words[1]);
    if (first == "set" && contains(words, "--"))
      m_path.assign("@", join({std::ranges::find(words, "--") + 1, words.end()}, " "), command.line);
    const bool sources = is_listed(first, "source .") && words.size() > 1;
    if (sources && !is_listed(words[1], words_of("settings")))
      report_path_loss(); // the script may start programs
    if (is_listed(first, k_prints) ? m_output_runs || first == "tee" || !m_open.empty()
                                   : is_listed(first, "cp mv") && is_script_name(words.back()))
      read_printed(command, depth);
    else if (is_listed(first, k_read_lines) ||
             (sources && words[1] == "/dev/stdin")) // the lines are commands, or values to export
      read_input(command, Started::sourced, depth);
    else if (is_listed(first, k_run_input))
      read_input(command, how_started(words), depth);
    else if (sources)
      read_file(words[1], Started::sourced);
    else if (is_listed(first, "eval trap"))
      read(join({words.begin() + 1, words.end()}, " "), command.line, depth + 1);
    else if (is_listed(first, "for set"))
      read_texts(words, command.line, depth);
    if (is_plain_tool(first) && find_launcher(words, 0, words.size()) == nullptr)
      return;
    if (find_opaque(first) != nullptr) {
      Argv values;
      if (!command.input.empty())
        words.push_back(command.input);
      for (const std::string& word : words) // as in `ssh node1 "$CMD --rank 1"`
        for (const std::string& part : split_words(word))
          if (const Argv value = m_path.expand({part}); value != Argv{part})
            values.insert(values.end(), value.begin(), value.end());
      std::ranges::move(values, std::back_inserter(words));
    }
    walk_command(command, depth);
  }

  void walk_command(const Command& command, int depth) {
    const Walk walked = walk(command.words, "/");
    const Launch launch = launch_of(command.words, walked);
    add_loss(command.line, find_loss(launch));
    if (walked.elsewhere) // no program is listed, but one is started
      report_path_loss();
    for (const Program& program : walked.programs)
      read_started(launch, program, command, depth);
  }

  /// Reads the commands in the input of a command.
  void read_input(const Command& command, Started how, int depth) {
    if (!command.input.empty())
      read(command.input, command.line, depth + 1, how);
    else
      read_file(command.from, how);
  }

  /// Reads what a command prints or copies, because something may run it: its own text, or the file that it shows.
  void read_printed(const Command& command, int depth) {
    const Argv& words = command.words;
    const std::string& first = words.front();
    const std::string to = is_listed(first, "tee cp mv") ? words.back() : command.to;
    if (is_listed(to, k_no_commands))
      return;
    const std::string text = is_listed(first, "echo printf") ? written_by(words) : command.input;
    const std::string shown = is_listed(first, "cp mv") && words.size() > 2 ? words[words.size() - 2]
                              : command.from.empty()                        ? words.back()
                                                                            : command.from;
    const bool sets = is_listed(shown, "*.env"); // as in `export $(cat x.env)`
    const Started how = m_submits ? Started::submitted : Started::run;
    if (!text.empty())
      read(text, command.line, depth + 1, how);
    else if (m_output_runs || m_open.ends_with('<') || first == "cat" || sets || is_script_name(shown))
      read_file(shown, sets ? Started::sourced : how);
    if (!command.appends && !contains(words, "-a")) // else the file may hold more commands
      m_written.insert(normalize_path(to, "/"));
  }

  /// Notes a file of commands. One that the text has written was read there.
  void read_file(const std::string& name, Started how = Started::run, const Argv& arguments = {}) {
    if (!is_substitution(name) && !is_listed(name, k_no_commands) && !m_written.contains(normalize_path(name, "/")))
      for (const std::string& file : m_path.find_files(name))
        if (NamedScript one{file, how, arguments}; m_out.scripts.empty() || m_out.scripts.back() != one)
          m_out.scripts.push_back(std::move(one)); // a text may be read twice
  }

  void add_loss(int line, Mention loss) {
    loss.line = line;
    if (!loss.code.empty() && (m_out.losses.empty() || m_out.losses.back() != loss)) // a text may be read twice
      m_out.losses.push_back(std::move(loss));
  }
  /// Reports a loss of PYTHONPATH, because a program is started now.
  void report_path_loss() {
    if (const auto lost = m_path.take_loss())
      m_out.losses.push_back(*lost);
  }

  /// True if these words in front of a command take the guard away. A variable that branches give several values keeps
  /// the one that does.
  [[nodiscard]] bool loses_guard(Argv words) const {
    words.resize(std::min(words.size(), k_most_prefix));
    words.insert(words.end(), {"python", "t.py"});
    return !find_loss(launch_of(words, walk(words, "/"))).code.empty();
  }

  void read_assignment(const Assignment& one, int line) {
    if (one.name == "SHAREFS_GUARD" && one.value == "0")
      add_loss(line, {1, "SF407", "SHAREFS_GUARD=0", "switches the guard off"});
    static const auto k_rules = variable_rules();
    if (std::ranges::find(k_rules, one.name, &CacheRule::name) != k_rules.end() || names_cache(one.name))
      m_out.caches.push_back({line, "", one.name, one.value});
    const auto old = m_path.environment().find(one.name);
    const bool keeps = old != m_path.environment().end() && loses_guard(m_path.expand(words_of_value(old->second))) &&
                       !loses_guard(m_path.expand(words_of_value(one.value)));
    if (!keeps)
      m_path.assign(one.name, one.value, line);
  }

  /// Reads those of the words that are texts, because any of them may be run.
  void read_texts(const Argv& words, int line, int depth) {
    for (const std::string& word : words)
      if (is_text(word))
        read(word.starts_with('[') ? word.substr(word.find('=') + 1) : word, line, depth + 1);
  }

  void assign_array(const Argv& words, int line, int depth) {
    const auto name = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with('='); });
    if (name == words.end()) // the word of a here-string, no array
      return;
    const Argv value(name + 1, words.end());
    read_texts(value, line, depth);
    read_assignment({.name = name->substr(0, name->find('=')), .value = " " + join(value, " ")}, line);
  }

  /// Reports a program and the caches that its options name.
  void add_program(const Launch& launch, const Program& program, int line) {
    std::string chain;
    for (const ChainLink& link : launch.walk.chain)
      chain += (chain.empty() ? "" : " ") + link.name;
    if (program.python || is_script_name(program.name) || !chain.empty())
      m_out.programs.push_back({line, "", program.name, chain});
    const Row* const framework = framework_of(program, launch.argv);
    for (const Assignment& one : program_options(launch.argv, program))
      if (const auto rule = rule_for_flag(program, framework, one.name, {}); rule && is_moved(rule->cache_class))
        m_out.caches.push_back({line, "", one.name, one.value});
  }

  Facts& m_facts;
  Start m_start{{}, "/", {}};
  PythonPath m_path;
  bool m_submits = false;                   ///< the text submits a script, perhaps one that it writes
  bool m_output_runs = false;               ///< something may run what the present command prints
  std::string m_open;                       ///< open subshells `(` and substitutions `$`, `<`
  std::set<std::string> m_written;          ///< files that the text writes
  Rules m_rules{{}, When::shared, Guard()}; // with a guard, because only then a loss counts
  ScriptReport m_out;
};

} // namespace

ScriptReport read_script(const std::string& text, Facts& facts, const NamedScript& script) {
  ScriptReader reader(facts, script.name, script.arguments);
  reader.read(text, 1, 0, script.how);
  return reader.finish(script.how);
}

ScriptReport read_program(const Launch& launch, const Program& program) {
  ScriptReader reader(launch.facts, "", words_behind(launch, program));
  reader.read_started(launch, program, {.words = {}, .from = launch.start.input}, 0);
  return reader.finish(Started::run);
}

} // namespace sharefs::cachefix

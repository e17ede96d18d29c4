#include "cachefix/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/script_path.hpp"

#include <ranges>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_prints = "echo printf cat tee sed grep envsubst head tail sort";
constexpr std::string_view k_run_input = "xargs parallel bsub qsub at batch";
constexpr std::string_view k_read_lines = "done read mapfile readarray";
constexpr std::size_t k_most_prefix = 16; // words of a variable in front of a program
constexpr int k_deepest_text = 4;         // texts within texts: bash -c in bash -c
constexpr std::size_t k_most_text = 1U << 20U;

bool is_script_name(const std::string& word) {
  return is_listed(word, "*.sh *.bash *.sbatch *.slurm") && word.find('$') == std::string::npos;
}

/// True if the word is the output of a command: `$(...)`, `<(...)` or backquotes.
bool is_substitution(const std::string& word) {
  return is_listed(word, "$(* <(* `*") && is_listed(word, "*) *`");
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
  ScriptReader(Facts& facts, const Argv& arguments) : m_facts(facts) {
    if (arguments.empty())
      return;
    m_path.set_words("0", {arguments[0]});
    m_path.set_words("@", {arguments.begin() + 1, arguments.end()});
  }

  void read(const std::string& text, int first_line, int depth, Started how = Started::run) {
    if (depth > k_deepest_text || text.empty())
      return;
    Commands commands = commands_of(text);
    m_path.note_name_lists(commands);
    std::map<std::string, Argv> calls; // the arguments of all calls of a function, by its name
    for (const Command& command : commands)
      if (!command.words.empty() && calls[command.words[0]].size() < k_most_words)
        std::ranges::copy(command.words | std::views::drop(1) | std::views::take(k_most_words),
                          std::back_inserter(calls[command.words[0]]));
    std::optional<Argv> outside; // the value of $@ outside of the function that is being read
    for (Command& command : commands) {
      Argv& words = command.words;
      command.line += first_line - 1;
      const char behind = command.is_array ? ';' : command.behind;
      const bool by_word = words.size() > 1 && words[0] == "function";
      if (by_word || (behind == '(' && words.size() == 1))
        outside = outside.value_or(m_path.set_words("@", calls[words[by_word ? 1 : 0]]));
      else if (outside && !words.empty() && words[0] == "}")
        m_path.set_words("@", *std::exchange(outside, std::nullopt));
      if (command.is_array)
        assign_array(words, command.line);
      else if (!command.is_directive)
        read_command(command, depth);
      else if (how == Started::submitted) // else the directive is only a comment
        add_loss(command.line, find_loss(launch_of(words, walk(words, "/"))));
      if (behind == '(') {
        m_path.begin_subshell();
        m_parenthesis = m_printed.input.size();
      } else if (behind == ')') {
        m_path.end_subshell();
      }
    }
  }

  /// Reads the scripts and the input of one program that a command starts. A loss by the command's own words is not
  /// reported here.
  void read_started(const Launch& launch, const Program& program, const Command& command, int depth) {
    const Argv& words = launch.argv;
    read_file(find_commands_file(words), command.line, depth);
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
      read_file(program.name, command.line, depth,
                {words.begin() + static_cast<std::ptrdiff_t>(program.index), words.end()}, how_started(words));
    add_program(launch, program, command.line);
  }

  ScriptReport finish(Started how) {
    for (const auto& [name, written] : std::exchange(m_written, {})) // nothing that was read starts these scripts
      if (is_script_name(name))
        read(written.input, written.line, 1);
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
    if (keyword == "{")
      m_printed = {};
    m_path.note_test(words, command.behind);
    words.erase(words.begin(), std::ranges::find_if_not(
                                   words, [](const auto& word) { return is_listed(word, words_of("keywords")); }));
    if (keyword == "exec" && !words.empty() && words.front() == "-c") // bash(1): with an empty environment
      words.insert(words.erase(words.begin()), {"env", "-i"});
    if (keyword == "spawn") // expect(1): what is sent to the program may start Python
      words.emplace_back("python");
    if (!words.empty() && words.front().starts_with('@') && words.front().size() > 1) // make: do not print the command
      words.front().erase(0, 1);
    if (words.size() > 2 && is_listed(words[words.size() - 2], "= := ::=")) { // make: export A := 1; nu: $env.A = 1
      std::string& name = words[words.size() - 3];
      name.erase(0, name.starts_with("$env.") ? 5 : name.starts_with('$') ? 1 : 0);
      words[words.size() - 3] += "=" + words.back();
      words.resize(words.size() - 2);
    }
    for (const std::string& word : words) // as in `: ${RUN:=srun --export=NONE}`; PYTHONPATH has the guard's value
      if (const auto sign = word.find(":="); word.starts_with("${") && word.ends_with('}') &&
                                             sign != std::string::npos && !word.starts_with("${PYTHONPATH"))
        read_assignment({.name = word.substr(2, sign - 2), .value = word.substr(sign + 2, word.size() - sign - 3)},
                        command.line);
    if (keyword == "alias") // its words are kept like those of a variable, whose name no variable can have
      for (const std::string& word : words)
        if (const auto equals = word.find('='); equals != std::string::npos)
          m_path.set_words("alias " + word.substr(0, equals), split_words(word.substr(equals + 1)));
    if (!words.empty())
      if (const Argv& alias = m_path.words("alias " + words[0]); !alias.empty()) {
        words.erase(words.begin());
        words.insert(words.begin(), alias.begin(), alias.end());
      }
    // Words are expanded before assignments are read: a text such as bash -c "$LAUNCH python ..." has them in a
    // variable.
    words = m_path.expand(words);
    if (const Argv file = m_path.expand({command.to}); file.size() == 1)
      command.to = file[0];
    m_path.begin_subshell(); // `PYTHONPATH= git pull` changes it for one command
    const auto assigned = m_path.take_assignments(words, command.line);
    for (const Assignment& one : assigned)
      read_assignment(one, command.line);
    read_expanded(command, depth);
    m_path.end_subshell(!assigned.empty() && !words.empty() && !PythonPath::sets_variables(words[0]));
  }

  void read_expanded(Command& command, int depth) {
    Argv& words = command.words;
    const std::string first = words.empty() ? "" : words.front();
    if ((first.empty() || first == "done") && !command.to.empty()) // as in `{ echo a; echo b; } > job.sh`
      note_file(command.to, command.line, std::exchange(m_printed, {}), depth);
    if (first.empty())
      return;
    if (is_listed(first, "cd pushd") && words.size() == 2)
      m_path.change_directory(words[1]);
    if (first == "set" && contains(words, "--"))
      m_path.set_words("@", {std::ranges::find(words, "--") + 1, words.end()});
    for (const std::string& word : words)
      if (first == "for" && is_text(word)) // for CMD in "python a.py" "python -I b.py"
        read_assignment({.name = words[1], .value = word}, command.line);
    const bool sources = is_listed(first, "source .") && words.size() > 1;
    if (sources && !is_listed(words[1], words_of("settings")))
      report_path_loss(); // the script may start programs
    if (is_listed(first, "cp mv") && words.size() == 3)
      note_file(words[2], command.line, find_content(words[1]), depth);
    else if (is_listed(first, k_prints))
      note_output(command, depth);
    else if (is_listed(first, k_read_lines) ||
             (sources && words[1] == "/dev/stdin")) // the lines are commands, or values to export
      read_input(command, Started::sourced, depth);
    else if (is_listed(first, k_run_input))
      read_input(command, how_started(words), depth);
    else if (sources || (words.size() == 2 && first == "eval" && is_substitution(words[1])))
      read_file(words[1], command.line, depth, {words.begin() + 1, words.end()}, Started::sourced);
    else if (is_listed(first, "eval trap"))
      read(join({words.begin() + 1, words.end()}, " "), command.line, depth + 1);
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

  /// Reads the commands in the input of a command. If the text does not show that input, it is what was printed last.
  void read_input(const Command& command, Started how, int depth) {
    if (!command.input.empty())
      read(command.input, command.line, depth + 1, how);
    else if (!command.from.empty())
      read_file(command.from, command.line, depth, {}, how);
    else if (!command.words.empty() && command.words[0] != "done")
      read_printed(std::exchange(m_printed, {}), 0, command.line, depth, how);
  }

  /// Notes the output of a command: as the content of a file, or for the next command that reads it.
  void note_output(const Command& command, int depth) {
    const Argv& words = command.words;
    const bool tee = words[0] == "tee";
    const std::string file = !command.from.empty() || words.size() == 1 || tee ? command.from : words.back();
    Command printed{.words = {}, .input = is_listed(words[0], "echo printf") ? written_by(words) : command.input};
    if (printed.input.empty() && !file.starts_with('-'))
      printed = find_content(file);
    if (contains(printed.words, file) && is_listed(file, "*.env")) // as in `export $(cat x.env)`
      read_file(file, command.line, depth, {}, Started::sourced);
    if (const std::string& to = tee && words.size() > 1 ? words.back() : command.to; !to.empty()) {
      if (printed.input.empty()) // tee reads from a pipe
        append(printed, std::exchange(m_printed, {}));
      note_file(to, command.line, printed, depth);
    }
    if (command.to.empty())
      append(m_printed, printed);
  }

  /// Returns what the text has written to a file; else the name of the file.
  [[nodiscard]] Command find_content(const std::string& file) const {
    const auto written = m_written.find(file_name(file));
    return written != m_written.end() ? written->second : Command{.words = {file}};
  }
  [[nodiscard]] static std::string file_name(const std::string& path) {
    return path.starts_with("./") ? path.substr(2) : path;
  }
  static void append(Command& all, const Command& more) {
    if (all.input.size() < k_most_text && !more.input.empty())
      all.input += more.input + "\n";
    if (all.words.size() < k_most_words)
      all.words.insert(all.words.end(), more.words.begin(), more.words.end());
  }
  void note_file(const std::string& file, int line, const Command& printed, int depth) {
    Command& written = m_written[file_name(file)]; // a text may write a file line by line
    written.line = written.input.empty() ? line : written.line;
    append(written, printed);
    if (base_name(file) == ".deepspeed_env") // deepspeed hands on the variables in it
      read(printed.input, line, depth + 1, Started::sourced);
  }

  /// Reads what was printed, from byte `begin` on, as commands.
  void read_printed(const Command& printed, std::size_t begin, int line, int depth, Started how) {
    read(printed.input.substr(std::min(begin, printed.input.size())), line, depth + 1, how);
    for (const std::string& file : printed.words)
      read_file(file, line, depth, {}, how);
  }

  /// Reads a file of commands: what this text has written to it, or else the file itself, which is noted as a script.
  /// For `<(...)` and `$(...)` it reads what their commands print.
  void read_file(const std::string& name, int line, int depth, const Argv& arguments = {}, Started how = Started::run) {
    if (is_substitution(name))
      return read_printed(std::exchange(m_printed, {}), m_parenthesis, line, depth, how);
    if (const auto written = m_written.find(file_name(name)); written != m_written.end()) {
      const Command text = written->second;
      m_written.erase(written);
      return read_printed(text, 0, text.line, depth, how);
    }
    for (const std::string& file : m_path.find_files(name))
      m_out.scripts.push_back({file, arguments, how});
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
    const bool whole =
        is_substitution(one.value) || (one.value.starts_with("${") && one.value.find('}') == one.value.size() - 1);
    const Argv words = m_path.expand(whole ? Argv{one.value} : split_words(one.value));
    const bool keeps = !m_path.words(one.name).empty() && loses_guard(m_path.words(one.name)) && !loses_guard(words);
    m_path.assign(one.name, one.value, keeps ? Argv() : words, line);
  }

  void assign_array(const Argv& words, int line) {
    const auto name = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with('='); });
    if (name == words.end()) // the word of a here-string, no array
      return;
    const Argv value(name + 1, words.end());
    const std::string variable = name->substr(0, name->find('='));
    // Any value of an associative array may be run, if it is a text.
    if (!value.empty() && value[0].starts_with('[') && std::ranges::any_of(value, is_text)) {
      for (const std::string& one : value)
        read_assignment({.name = variable, .value = one.substr(one.find('=') + 1)}, line);
      return;
    }
    m_path.assign(variable, join(value, " "), value, line);
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
  /// The output of the text that no command has read yet: `input` is the known text, `words` are files that were
  /// printed.
  Command m_printed;
  std::map<std::string, Command> m_written; ///< the same for each file that the text has written
  std::size_t m_parenthesis = 0;            ///< byte in m_printed at which the last parenthesis began
  Rules m_rules{{}, When::shared, Guard()}; // with a guard, because only then a loss counts
  ScriptReport m_out;
};

} // namespace

ScriptReport read_script(const std::string& text, Facts& facts, const Argv& arguments, Started how) {
  ScriptReader reader(facts, arguments);
  reader.read(text, 1, 0, how);
  return reader.finish(how);
}

ScriptReport read_program(const Launch& launch, const Program& program) {
  const bool text = program.kind == ProgramKind::shell; // its $0 is the word behind it
  ScriptReader reader(
      launch.facts,
      text ? Argv(launch.argv.begin() + static_cast<std::ptrdiff_t>(program.index) + 1, launch.argv.end()) : Argv());
  reader.read_started(launch, program, {.words = {}, .from = launch.start.input}, 0);
  return reader.finish(Started::run);
}

} // namespace sharefs::cachefix

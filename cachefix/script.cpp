#include "cachefix/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launch.hpp"
#include "cachefix/shell_text.hpp"

#include <cctype>
#include <ranges>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_keywords = "then do else elif if while until ! { } time exec command builtin nohup coproc";
constexpr std::string_view k_exports = "export declare typeset readonly local";
constexpr std::string_view k_run_text = "eval trap source ."; // with the variables in front of them
constexpr std::string_view k_changes = "unset unsetenv setenv read mapfile readarray";
constexpr std::string_view k_changes_first = "for select set printf"; // the first word behind their options
constexpr std::string_view k_run_input = "done read mapfile readarray xargs parallel bsub qsub at batch";
constexpr std::string_view k_path = "PYTHONPATH";
constexpr int k_deepest_text = 4;         // bash -c in bash -c
constexpr std::size_t k_most_words = 256; // of a command whose variables are words
constexpr std::size_t k_most_text = 1U << 20U;

bool is_script_name(const std::string& word) {
  return is_listed(word, "*.sh *.bash *.sbatch *.slurm") && word.find('$') == std::string::npos;
}

/// Does it stand in the text, and not as a part of a longer name?
bool has_name(std::string_view text, std::string_view name) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + name.size()))
      return true;
  return false;
}

/// The name of the variable at a `$`: of `$A`, `${A...}`, `${!A}`, `$@`.
std::string variable_at(std::string_view text, std::size_t dollar) {
  const auto begin = std::min(text.find_first_not_of("{!\"", dollar + 1), text.size());
  auto end = begin;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
    ++end;
  return std::string(text.substr(begin, end == begin ? 1 : end - begin));
}

/// Do the directives of a script count that these words start? Options go before them.
Started started_by(const Argv& argv) {
  const auto command =
      std::ranges::find_if(argv, [](const auto& word) { return is_listed(base_name(word), "sbatch bsub"); });
  const bool counts = command != argv.end() && std::none_of(command, argv.end(), [](const auto& word) {
                        return is_listed(word, "--export* -env");
                      });
  return counts ? Started::submitted : Started::run;
}

/// The file of commands that make, xargs, parallel or srun reads; empty: there is none.
std::string commands_file(const Argv& argv) {
  const auto command = std::ranges::find_if(
      argv, [](const auto& word) { return is_listed(base_name(word), "make gmake xargs parallel srun"); });
  if (command == argv.end())
    return {};
  const bool make = base_name(*command).ends_with("make");
  std::string file = make ? "Makefile" : "", directory;
  for (auto word = command + 1; word != argv.end() && word + 1 != argv.end(); ++word) {
    file = is_listed(*word, make ? "-f" : "-a --arg-file :::: --multi-prog") ? *(word + 1) : file;
    directory = make && *word == "-C" ? *(word + 1) : directory;
  }
  return directory.empty() ? file : join_path(directory, file);
}

/// Is it a shell or a batch system that reads its commands from its input?
bool reads_input(const Launch& launch, const Program& program) {
  const auto links = launch.walk.links(program);
  const Tail tail = links.empty() ? Tail::command : links.back().get().launcher->tail;
  return program.kind == ProgramKind::program && (tail == Tail::shell || tail == Tail::batch) &&
         program.index == links.back().get().index;
}

class ScriptReader {
 public:
  ScriptReader(Facts& facts, const Argv& arguments) : m_facts(facts) {
    for (std::size_t i = 0; i < std::min<std::size_t>(arguments.size(), 10); ++i)
      m_values[std::to_string(i)] = {arguments[i]};
    if (!arguments.empty())
      m_values["@"] = m_values["*"] = {arguments.begin() + 1, arguments.end()};
  }

  void read(const std::string& text, int first_line, int depth, Started how = Started::run) {
    if (depth > k_deepest_text || text.empty())
      return;
    Commands commands = commands_of(text);
    std::map<std::string, Argv> calls; ///< by a function's name the words of all its calls
    for (const Command& command : commands)
      if (!command.words.empty() && calls[command.words[0]].size() < k_most_words)
        std::ranges::copy(command.words | std::views::drop(1) | std::views::take(k_most_words),
                          std::back_inserter(calls[command.words[0]]));
    std::map<std::string, Argv> outside; ///< of the function that is open
    for (Command& command : commands) {
      command.line += first_line - 1;
      if (command.is_directive) {
        if (how == Started::submitted) // otherwise it is a comment
          lose(command.line, loss_of(launch_of(command.words, walk(command.words, "/"))));
        continue;
      }
      const bool by_word = command.words.size() > 1 && command.words[0] == "function";
      if (by_word || (command.behind == '(' && command.words.size() == 1))
        for (const char* name : {"@", "*", "1", "2", "3"})
          outside.try_emplace(name, std::exchange(m_values[name], calls[command.words[by_word ? 1 : 0]]));
      else if (!command.words.empty() && command.words[0] == "}")
        for (auto& [name, value] : std::exchange(outside, {}))
          m_values[name] = value;
      const char behind = command.is_array ? ';' : command.behind;
      if (!command.words.empty())
        read_command(std::move(command), depth);
      if (behind == '(')
        m_subshells.push_back(m_lost);
      else if (behind == ')' && !m_subshells.empty()) { // what is set in there has no effect outside
        m_lost = std::move(m_subshells.back());
        m_subshells.pop_back();
      }
    }
  }

  /// What a command starts, but for what its own words lose.
  void started(const Launch& launch, const Program& program, const Command& command, int depth) {
    const Argv& words = launch.argv;
    start_file(commands_file(words), command.line, depth);
    const Argv arguments(words.begin() + static_cast<std::ptrdiff_t>(program.index), words.end());
    if (program.kind == ProgramKind::shell)
      return read(program.name, command.line, depth + 1);
    if (reads_input(launch, program)) {
      read(command.input, command.line, depth + 1, started_by(words));
      return start_file(command.from, command.line, depth, {}, started_by(words));
    }
    if (is_plain_tool(program) || program.name.starts_with('-')) // or an option that is not known
      return;
    settle();
    const bool is_file = program.kind == ProgramKind::file || program.name.find('/') != std::string::npos ||
                         is_script_name(program.name) || launch.file_of(program).starts_with("#!");
    if (!program.python && is_file)
      start_file(program.name, command.line, depth, arguments, started_by(words));
    report(launch, program, command.line);
  }

  ScriptReport finish(Started how) {
    for (const auto& [name, written] : std::exchange(m_written, {})) // started in a way that is not seen
      if (is_script_name(name))
        read(written.input, written.line, 1);
    if (how == Started::sourced || m_sourced == m_lost || out.programs.empty()) // else nothing is started behind it
      settle();
    std::ranges::stable_sort(out.losses, {}, &Mention::line);
    return std::move(out);
  }

 private:
  [[nodiscard]] Launch launch_of(const Argv& words, const Walk& walked) const {
    return {words, walked, m_start, m_environment, m_facts, m_rules};
  }

  void read_command(Command command, int depth) {
    Argv& words = command.words;
    if (command.is_array)
      return array(words);
    note_test(command);
    const std::string keyword = words.empty() ? "" : words.front();
    if (keyword == "{")
      m_group.clear();
    else if (keyword == "}" && !command.to.empty()) // { echo a; echo b; } > job.sh
      write(join(expanded({command.to}), " "), command.line, std::exchange(m_group, {}));
    if (is_listed(keyword, "else elif fi esac") || (command.behind == ')' && words.size() == 1))
      m_other_branch = !is_listed(keyword, "fi esac");
    words = behind_keywords(words);
    if (keyword == "exec" && !words.empty() && words.front() == "-c") // with no environment
      words.insert(words.erase(words.begin()), {"env", "-i"});
    if (!words.empty() && words.front().starts_with('@') && words.front().size() > 1) // of make
      words.front().erase(0, 1);
    set_names(command);
    if (m_looked == 2 && !is_test(words))
      m_looked = 0;
    words = expanded(words);
    if (const Argv file = expanded(Argv{command.to}); file.size() == 1)
      command.to = file[0];
    if (words.empty())
      return;
    const std::string& first = words.front();
    if (is_listed(first, "echo printf cat tee")) {
      const std::string text = command.input.empty() ? written_by(words) : command.input;
      if (command.to.empty())
        add_text(m_group, text);
      if (!command.to.empty() || (first == "tee" && words.size() > 1))
        write(command.to.empty() ? words.back() : command.to, command.line, text);
    }
    if (first == "eval" && words.size() == 2 && words[1].starts_with("$("))
      return start_file(words[1], command.line, depth);
    if (is_listed(first, "eval trap"))
      return read(join({words.begin() + 1, words.end()}, " "), command.line, depth + 1);
    if (is_listed(first, k_run_input) || (is_listed(first, "source .") && contains(words, "/dev/stdin"))) {
      read(command.input, command.line, depth + 1, started_by(words));
      start_file(command.from, command.line, depth, {}, started_by(words));
    }
    if (is_plain_tool(first) && find_launcher(words, 0, words.size()) == nullptr) {
      const bool sources = is_listed(first, "source .") && words.size() > 1;
      if (sources || (is_listed(first, "cat grep sed") && is_listed(words.back(), "*.env"))) // export $(cat x.env)
        start_file(sources ? words[1] : words.back(), command.line, depth, {words.begin() + 1, words.end()},
                   Started::sourced);
      return;
    }
    if (!command.input.empty() && find_opaque(first) != nullptr)
      words.push_back(command.input);
    start(command, depth);
  }

  void start(const Command& command, int depth) {
    const Argv& words = command.words;
    const Walk walked = walk(words, "/");
    const Launch launch = launch_of(words, walked);
    const Mention loss = loss_of(launch);
    m_starts_ray = m_starts_ray || (contains(words, "ray") && contains(words, "start"));
    if (!m_starts_ray || loss.subject != "RAY_ADDRESS")
      lose(command.line, loss);
    for (const Program& program : walked.programs)
      started(launch, program, command, depth);
  }

  [[nodiscard]] static std::string file_name(const std::string& path) {
    return path.starts_with("./") ? path.substr(2) : path;
  }

  void write(const std::string& file, int line, const std::string& text) {
    Command& written = m_written[file_name(file)]; // it may be written line by line
    written.line = written.input.empty() ? line : written.line;
    add_text(written.input, text);
  }
  static void add_text(std::string& all, const std::string& text) {
    if (all.size() < k_most_text)
      all += text + "\n";
  }

  /// A file with commands: what this text has written there, or one that is there. Or what `<(...)` and `$(...)` write.
  void start_file(const std::string& name, int line, int depth, const Argv& arguments = {},
                  Started how = Started::run) {
    if (name.starts_with("<(") || name.starts_with("$(")) {
      const Commands written = commands_of(name.substr(2, name.size() - 3) + " | bash");
      if (written.empty() || depth > k_deepest_text)
        return;
      read(written.back().input, line, depth + 1, how);
      return start_file(written.back().from, line, depth + 1, {}, how);
    }
    if (const auto written = m_written.find(file_name(name)); written != m_written.end()) {
      const Command text = written->second;
      m_written.erase(written);
      return read(text.input, text.line, depth + 1, how);
    }
    if (!name.empty() && name.find('$') == std::string::npos)
      out.scripts.push_back({name, arguments, how});
    m_sourced = how == Started::sourced ? m_lost : m_sourced;
  }

  void lose(int line, Mention loss) {
    loss.line = line;
    if (!loss.code.empty())
      out.losses.push_back(std::move(loss));
  }
  void overwrites(int line, const std::string& subject) {
    if (m_looked == 0 || subject != "PYTHONPATH=")
      m_lost = Mention{line, "SF407", subject, "changes PYTHONPATH, so what it starts is not guarded"};
  }
  /// A program is started, so that what has happened to PYTHONPATH counts.
  void settle() {
    if (!m_lost)
      return;
    std::ranges::replace(m_subshells, m_lost, std::optional<Mention>());
    out.losses.push_back(*std::exchange(m_lost, std::nullopt));
  }

  // What a text does to PYTHONPATH

  [[nodiscard]] static Argv behind_keywords(const Argv& words) {
    return {std::ranges::find_if_not(words, [](const auto& word) { return is_listed(word, k_keywords); }), words.end()};
  }
  [[nodiscard]] static bool is_test(const Argv& words) {
    return !words.empty() && is_listed(words.front(), "[ [[ test");
  }

  /// `[ -z "$PYTHONPATH" ] && export PYTHONPATH=src`: who has looked at it gives it a value only where it has none.
  void note_test(const Command& command) {
    const std::string keyword = command.words.empty() ? "" : command.words.front();
    const Argv words = behind_keywords(command.words);
    const bool looks = is_test(words) && !contains(words, "!=") &&
                       std::ranges::any_of(words, [](const auto& word) { return has_name(word, k_path); });
    if (looks)
      m_looked = is_listed(keyword, "if elif") ? 1 : command.behind == 'a' || command.behind == 'o' ? 2 : 0;
    else if (keyword == "fi")
      m_looked = 0;
  }

  /// Is there a variable in the text whose value has the name in it?
  [[nodiscard]] bool holds_it(const std::string& text) const {
    bool found = false;
    for (auto at = text.find('$'); at != std::string::npos && !found; at = text.find('$', at + 1))
      found = variable_at(text, at) != k_path && m_mentions.contains(variable_at(text, at));
    return found;
  }
  /// Does the text have the name in it, by itself or by a variable? As a value it keeps what PYTHONPATH was.
  [[nodiscard]] bool mentions(const std::string& text) const { return has_name(text, k_path) || holds_it(text); }

  /// Would they lose the guard in front of a command?
  [[nodiscard]] bool loses(Argv words) const {
    words.insert(words.end(), {"python", "t.py"});
    return !loss_of(launch_of(words, walk(words, "/"))).code.empty();
  }

  /// `words` are those of the value as a command's, if they are known.
  void remember(const std::string& variable, const std::string& value, const Argv& words, bool adds = false) {
    if (mentions(value))
      m_mentions.insert(variable);
    else if (!adds)
      m_mentions.erase(variable);
    m_environment[variable] = (adds ? m_environment[variable] : "") + value;
    Argv& all = m_values[variable];
    if (words.empty() || (m_other_branch && !adds && loses(all))) // of the branches of an `if` that one counts
      return;
    all.resize(adds ? all.size() : 0);
    all.insert(all.end(), words.begin(), words.end());
    all.resize(std::min(all.size(), k_most_words));
  }

  /// PYTHONPATH, `$v` that holds the name, and `${!PYTHON*}`.
  [[nodiscard]] bool is_path(const std::string& word) const {
    const bool is_prefix = word.starts_with("${!") && (word.ends_with("*}") || word.ends_with("@}")) &&
                           k_path.starts_with(word.substr(3, word.size() - 5));
    return word == k_path || is_prefix || (word.starts_with('$') && mentions(word));
  }

  /// Assignments in front of a command, and commands that give variables another value, or take them away.
  void set_names(Command& command) {
    Argv& words = command.words;
    const auto behind = std::ranges::find_if_not(words, [](const auto& word) { return assigns_variable(word); });
    const bool of_tool =
        behind != words.end() && is_plain_tool(*behind) && !is_listed(*behind, k_exports) &&
        !is_listed(*behind, k_run_text) &&
        find_launcher(words, static_cast<std::size_t>(behind - words.begin()), words.size()) == nullptr;
    while (!words.empty()) {
      const auto equals = words.front().find('=');
      const std::string name = words.front().substr(0, equals); // or `name+`
      if (equals == std::string::npos || !assigns_variable(name.substr(0, name.find('+')) + "="))
        break;
      if (!of_tool) // PYTHONPATH= git ...
        assignment(name, words.front().substr(equals + 1), command.line);
      words.erase(words.begin());
    }
    const std::string first = words.empty() ? "" : words.front();
    const bool exports = is_listed(first, k_exports);
    const bool takes = is_listed(first, k_changes) || (exports && contains(words, "-n"));
    const auto given = std::find_if(words.begin() + (words.empty() ? 0 : 1), words.end(),
                                    [](const auto& word) { return !word.starts_with('-'); });
    const bool one = is_listed(first, k_changes_first);
    for (auto word = words.begin(); word != words.end() && (exports || takes || one); ++word) {
      const auto equals = word->find('=');
      const bool of_make = exports && word + 1 != words.end() && is_listed(*(word + 1), "= :=");
      if (exports && !takes && equals != std::string::npos && equals > 0)
        assignment(word->substr(0, equals), word->substr(equals + 1), command.line);
      else if (is_path(*word) && (takes || of_make || (one && word == given)) &&
               !mentions(join({word + 1, words.end()}, " ")))
        overwrites(command.line, of_make ? "PYTHONPATH=" : (exports ? "-n" : first) + " PYTHONPATH");
    }
    if (is_listed(first, "for select") && words.size() > 2)
      remember(words[1], join({words.begin() + 3, words.end()}, " "), {});
    if (first == "set" && contains(words, "--"))
      m_values["@"] = m_values["*"] = expanded({std::ranges::find(words, "--") + 1, words.end()});
    if (exports)
      words.clear();
  }

  void assignment(std::string name, const std::string& value, int line) {
    const bool adds = name.ends_with('+');
    name.resize(name.size() - (adds ? 1 : 0));
    if (is_path(name) && !adds && !mentions(value))
      overwrites(line, "PYTHONPATH=");
    else if (is_path(name) && holds_it(value)) // it was kept, and has its value again
      m_lost.reset();
    if (name == "SHAREFS_GUARD" && value == "0")
      lose(line, {1, "SF407", "SHAREFS_GUARD=0", "switches the guard off"});
    static const auto k_rules = variable_rules();
    if (std::ranges::find(k_rules, name, &CacheRule::name) != k_rules.end() || names_cache(name))
      out.caches.push_back({line, "", name, value});
    const bool whole = value.starts_with("${") && value.find('}') == value.size() - 1;
    remember(name, value, expanded(whole ? Argv{value} : split_words(value)), adds);
  }

  void array(const Argv& words) {
    const auto name = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with('='); });
    if (name == words.end()) // it is the word of a here-string
      return;
    const Argv value(name + 1, words.end());
    remember(name->substr(0, name->find_first_of("+=")), join(value, " "), value, name->ends_with("+="));
  }

  /// `$RUN`, `${RUN}`, `${RUN[@]}`, `$@` as the words that it was last given; of `${RUN:-words}` in the place of the
  /// program else these.
  [[nodiscard]] Argv expanded(const Argv& words) const {
    Argv all;
    for (const std::string& word : words) {
      const bool whole = word.starts_with('$') &&
                         (word.find('}') == word.size() - 1 || word.find_first_of("{}/.:-=") == std::string::npos);
      const auto known = whole ? m_values.find(variable_at(word, 0)) : m_values.end();
      const auto sign = word.find_first_of("}-=+");
      const bool other = whole && word.starts_with("${") && sign != std::string::npos && word[sign] != '}';
      if (other && word[sign] == '+') // ${IMAGE:+--container-image=$IMAGE}
        std::ranges::move(split_words(word.substr(sign + 1, word.size() - sign - 2)), std::back_inserter(all));
      else if (known != m_values.end() && !known->second.empty() && all.size() < k_most_words)
        all.insert(all.end(), known->second.begin(), known->second.end());
      else if (other && all.empty())
        all = split_words(word.substr(sign + 1, word.size() - sign - 2));
      else // env PYTHONPATH=$NEW
        all.push_back(holds_it(word) && has_name(word, k_path) ? word + ":$PYTHONPATH" : word);
    }
    return all;
  }

  /// A program and the caches that its options name.
  void report(const Launch& launch, const Program& program, int line) {
    std::string chain;
    for (const ChainLink& link : launch.walk.chain)
      chain += (chain.empty() ? "" : " ") + link.name;
    if (program.python || is_script_name(program.name) || !chain.empty())
      out.programs.push_back({line, "", program.name, chain});
    const Row* const framework = framework_of(program, launch.argv);
    for (const Assignment& one : program_options(launch.argv, program))
      if (const auto rule = rule_for_flag(program, framework, one.name, {}); rule && is_moved(rule->cache_class))
        out.caches.push_back({line, "", one.name, one.value});
  }

  Facts& m_facts;
  Start m_start{{}, "/", {}};
  Environment m_environment;                       ///< what the text has assigned so far
  std::set<std::string> m_mentions;                ///< the variables with the name PYTHONPATH in their value
  std::map<std::string, Argv> m_values;            ///< the same as words, if they are not empty
  std::map<std::string, Command> m_written;        ///< files that the text has made, with their text as `input`
  std::optional<Mention> m_lost;                   ///< what PYTHONPATH is lost by, until a program is started
  std::optional<Mention> m_sourced;                ///< the same in front of the last file that was sourced
  std::vector<std::optional<Mention>> m_subshells; ///< the same in front of each that is open
  int m_looked = 0;                                ///< at PYTHONPATH, 1: up to `fi`, 2: for this command
  bool m_starts_ray = false;
  bool m_other_branch = false;              ///< behind `else`, or in a `case`
  std::string m_group;                      ///< what was written between braces
  Rules m_rules{{}, When::shared, Guard()}; // guarded, as what it is called by
  ScriptReport out;
};

} // namespace

ScriptReport read_script(const std::string& text, Facts& facts, const Argv& arguments, Started how) {
  ScriptReader reader(facts, arguments);
  reader.read(text, 1, 0, how);
  return reader.finish(how);
}

ScriptReport read_program(const Launch& launch, const Program& program) {
  const bool text = program.kind == ProgramKind::shell; // whose $0 stands behind it
  ScriptReader reader(
      launch.facts,
      text ? Argv(launch.argv.begin() + static_cast<std::ptrdiff_t>(program.index) + 1, launch.argv.end()) : Argv());
  reader.started(launch, program, {.words = {}, .from = launch.start.input}, 0);
  return reader.finish(Started::run);
}

} // namespace sharefs::cachefix

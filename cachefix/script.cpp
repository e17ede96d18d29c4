#include "cachefix/script.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launch.hpp"

#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_keywords = "then do else elif if while until ! { } time exec command builtin nohup coproc";
constexpr std::string_view k_exports = "export declare typeset readonly local -x -gx";
constexpr std::string_view k_shells = "bash sh dash zsh ksh";
constexpr int k_deepest_text = 3;        // bash -c in bash -c
constexpr int k_most_substitutions = 16; // one within the other
constexpr int k_most_shifts = 16;        // `<<` that begins no here-document

struct Command {
  Argv words = {};
  int line = 1;
  std::string input = {}; ///< of a here-document or a here-string
  bool piped = false;     ///< the next command reads what it writes
  bool directive = false; ///< of a batch script: its options count, and it starts nothing
  bool is_array = false;  ///< NAME= and the words of an array
};

/// A text as commands of words: quotes are taken off, and what the shell would expand stays as it is written.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : m_text(text) {}

  std::vector<Command> split() {
    for (m_at = 0; m_at < m_text.size(); ++m_at)
      take(m_text[m_at]);
    end_command();
    return std::move(m_commands);
  }

 private:
  void take(char c) {
    const std::string_view rest = m_text.substr(m_at);
    if (c == '\\') {
      if (rest.size() > 1 && m_text[++m_at] != '\n')
        add(m_text[m_at]);
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '#' && !m_word) {
      comment(rest.substr(0, rest.find('\n')));
    } else if (rest.starts_with("<<<")) {
      end_word();
      m_at += 2;
      m_next_is_input = true;
    } else if (rest.starts_with("<<") && m_shifts < k_most_shifts && document()) {
      return;
    } else if (c == '(' && m_word && m_word->ends_with('=')) { // NAME=( begins an array
      ++m_open;
      end_word();
      m_now.is_array = true;
    } else if (c == '`' || rest.starts_with("$(")) {
      substitution();
    } else if ((c == '\n' && !m_now.is_array) || std::string_view(";&|()").find(c) != std::string_view::npos) {
      m_open += c == '(' ? 1 : c == ')' ? -1 : 0;
      m_now.piped = c == '|' && !rest.starts_with("||");
      end_command();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_word();
    } else {
      add(c);
    }
    if (m_at == m_body) // the lines of a here-document follow
      m_at = m_behind_body;
  }

  void quoted(char quote) {
    add(std::string_view());
    for (++m_at; m_at < m_text.size() && m_text[m_at] != quote; ++m_at) {
      if (quote == '"' && (m_text[m_at] == '`' || m_text.compare(m_at, 2, "$(") == 0)) {
        substitution();
        continue;
      }
      if (quote == '"' && m_text[m_at] == '\\' && m_at + 1 < m_text.size())
        ++m_at;
      *m_word += m_text[m_at];
    }
  }

  /// `$(...)` and backquotes: commands of their own. They stay as they are written in the word around them.
  void substitution() {
    const std::size_t begin = m_at;
    if (m_substitutions == k_most_substitutions)
      return add(m_text[m_at]);
    ++m_substitutions;
    Command around = std::exchange(m_now, {});
    std::optional<std::string> word = std::exchange(m_word, std::nullopt);
    const int open = std::exchange(m_open, 0);
    const bool next_is_input = std::exchange(m_next_is_input, false);
    const std::string_view whole = m_text;
    const bool backquotes = whole[begin] == '`';
    if (backquotes) // the next one ends it, also in quotes and comments
      m_text = whole.substr(0, whole.find('`', begin + 1));
    for (m_at += backquotes ? 1 : 2; m_at < m_text.size() && (backquotes || m_text[m_at] != ')' || m_open > 0); ++m_at)
      take(m_text[m_at]);
    m_at = std::min(m_at, m_text.size());
    m_text = whole;
    end_command();
    --m_substitutions;
    m_open = open;
    m_next_is_input = next_is_input;
    m_now = std::move(around);
    m_word = std::move(word);
    add(whole.substr(begin, m_at + 1 - begin));
  }

  /// `<<WORD`: the lines behind this one up to WORD are read by the command. False if it is a shift in arithmetic.
  bool document() {
    const auto begin = std::min(m_text.find_first_not_of("<- \t'\"\\", m_at), m_text.size());
    const auto end = std::min(m_text.find_first_of(" \t\n;&|)'\"<>", begin), m_text.size());
    const auto body = std::min(m_text.find('\n', end), m_text.size());
    for (auto line = body; line < m_text.size();) {
      const auto stop = std::min(m_text.find('\n', line + 1), m_text.size());
      if (end > begin && trim(m_text.substr(line, stop - line)) == m_text.substr(begin, end - begin)) {
        end_word();
        m_now.input = m_text.substr(body, line - body);
        m_body = body;
        m_behind_body = stop;
        m_at = end - (m_text.find_first_of("'\"", begin) == end ? 0 : 1);
        return true;
      }
      line = stop;
    }
    ++m_shifts;
    return false;
  }

  /// A directive of a batch system is a command of its own: `#SBATCH --export=NONE` as `sbatch --export=NONE`.
  void comment(std::string_view line) {
    if (line.starts_with("#SBATCH ")) {
      Argv words = split_words(line);
      words.front() = "sbatch";
      words.resize(static_cast<std::size_t>(std::ranges::find(words, "#") - words.begin()));
      words.emplace_back("job.sh");
      m_commands.push_back({.words = std::move(words), .line = line_of(m_at), .directive = true});
    }
    m_at += line.size() - 1;
  }

  [[nodiscard]] int line_of(std::size_t at) {
    m_line += static_cast<int>(std::count(m_text.begin() + static_cast<std::ptrdiff_t>(m_counted),
                                          m_text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    m_counted = at;
    return m_line;
  }
  void add(std::string_view text) {
    if (!m_word && m_now.words.empty())
      m_now.line = line_of(m_at);
    if (!m_word)
      m_word.emplace();
    *m_word += text;
  }
  void add(char c) { add(std::string_view(&c, 1)); }
  void end_word() {
    if (m_word && m_next_is_input)
      m_now.input = *m_word;
    else if (m_word)
      m_now.words.push_back(*m_word);
    m_next_is_input = m_next_is_input && !m_word;
    m_word.reset();
  }
  void end_command() {
    end_word();
    if (!m_now.words.empty())
      m_commands.push_back(std::move(m_now));
    m_now = {};
  }

  std::string_view m_text;
  std::size_t m_at = 0;
  std::size_t m_body = std::string::npos, m_behind_body = 0; ///< where the lines of a here-document begin and end
  std::size_t m_counted = 0;
  int m_line = 1, m_shifts = 0;        ///< the line of m_counted
  int m_open = 0, m_substitutions = 0; ///< parentheses in the innermost substitution, and how deep that is
  std::optional<std::string> m_word;
  bool m_next_is_input = false;
  Command m_now;
  std::vector<Command> m_commands;
};

bool is_script_name(const std::string& word) {
  return is_listed(word, "*.sh *.bash *.sbatch *.slurm") && word.find('$') == std::string::npos;
}

class ScriptReader {
 public:
  explicit ScriptReader(Facts& facts) : m_facts(facts) {}

  void read(const std::string& text, int first_line, int depth) {
    if (depth > k_deepest_text)
      return;
    Command above; ///< in a pipe
    for (Command& command : Splitter(text).split()) {
      command.line += first_line - 1;
      if (above.piped && !above.words.empty() && command.input.empty()) {
        if (is_listed(above.words.front(), "echo printf"))
          command.input = join({above.words.begin() + 1, above.words.end()}, " ");
        else if (is_listed(above.words.front(), "cat tee sed envsubst"))
          command.input = above.input;
        command.line = above.line;
      }
      above = command;
      read_command(std::move(command), depth);
    }
  }

  ScriptReport out;

 private:
  void read_command(Command command, int depth) {
    Argv& words = command.words;
    if (command.is_array)
      return array(words);
    const auto drop = [&](std::string_view list) {
      words.erase(words.begin(),
                  std::ranges::find_if_not(words, [&](const auto& word) { return is_listed(word, list); }));
    };
    const bool executes = !words.empty() && words.front() == "exec";
    drop(k_keywords);
    if (executes && !words.empty() && words.front() == "-c")
      words.insert(words.erase(words.begin()), {"env", "-i"});
    if (!words.empty() && is_listed(words.front(), "-v -V")) // command -v
      return;
    if (!words.empty() && words.front().starts_with('-')) // time -p, exec -a
      words.erase(words.begin());
    if (!words.empty() && is_listed(words.front(), k_exports))
      drop(k_exports);
    while (!words.empty() && assigns_variable(words.front())) {
      assignment(words.front(), command.line);
      words.erase(words.begin());
    }
    if (words.size() > 1 && is_listed(words.front(), "unset printf read for -n +x") &&
        std::ranges::count(words, "PYTHONPATH") > 0)
      lose(command.line,
           {1, "SF407", words.front() + " PYTHONPATH", "changes PYTHONPATH, so what it starts is not guarded"});
    words = expanded(words);
    if (words.empty())
      return;
    const bool names_file =
        std::any_of(words.begin() + 1, words.end(), [](const auto& word) { return word[0] != '-'; });
    const bool shell = is_listed(base_name(words.front()), k_shells) && !command.input.empty() &&
                       (!names_file || std::ranges::count(words, "-s") > 0);
    if (words.front() == "eval" || shell)
      return read(shell ? command.input : join({words.begin() + 1, words.end()}, " "), command.line, depth + 1);
    if (std::ranges::any_of(words, is_script_name) || words.front() == "sbatch") // it is written here
      read(command.input, command.line, depth + 1);
    if (is_plain_tool(words.front()) && find_launcher(words, 0, words.size()) == nullptr)
      return sourced(words);
    if (!command.input.empty() && find_opaque(words.front()) != nullptr)
      words.push_back(command.input);
    const Walk walked = walk(words, "/");
    const Launch launch{words, walked, m_start, m_environment, m_facts, m_rules};
    lose(command.line, loss_of(launch));
    if (command.directive)
      return;
    std::string chain;
    for (const ChainLink& link : walked.chain)
      chain += (chain.empty() ? "" : " ") + link.name;
    for (const Program& program : walked.programs)
      if (program.kind == ProgramKind::program && is_listed(base_name(program.name), k_shells))
        read(command.input, command.line, depth + 1); // srun bash <<EOF
      else
        found(program, words, chain, command.line, depth);
  }

  void lose(int line, Mention loss) {
    loss.line = line;
    if (!loss.code.empty())
      out.losses.push_back(std::move(loss));
  }

  void assignment(const std::string& word, int line) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "PYTHONPATH" && value.find("PYTHONPATH") == std::string::npos)
      lose(line, {1, "SF407", "PYTHONPATH=", "overwrites PYTHONPATH, so what it starts is not guarded"});
    static const auto k_rules = variable_rules();
    if (std::ranges::find(k_rules, name, &VariableRule::name) != k_rules.end() || names_cache(name))
      out.caches.push_back({line, "", name, value});
    m_environment[name] = value;
    if (const Argv words = expanded(split_words(value)); !words.empty())
      m_values[name] = words;
  }

  void array(const Argv& words) {
    const auto name = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with('='); });
    if (name == words.end()) // it is the word of a here-string
      return;
    Argv& value = m_values[name->substr(0, name->find_first_of("+="))];
    if (!name->ends_with("+="))
      value.clear();
    value.insert(value.end(), name + 1, words.end());
  }

  /// `$RUN`, `${RUN}`, `${RUN[@]}` in the place of the program as the words that it was last given; of `${RUN:-words}`
  /// else these.
  [[nodiscard]] Argv expanded(const Argv& words) const {
    if (words.empty() || !words.front().starts_with('$'))
      return words;
    const std::string& first = words.front();
    const auto begin = std::min(first.find_first_not_of("${"), first.size());
    const auto known = m_values.find(first.substr(begin, first.find_first_of("}[:-=", begin) - begin));
    const auto dash = first.find_first_of("}-=");
    Argv all;
    if (known != m_values.end())
      all = known->second;
    else if (first.starts_with("${") && dash != std::string::npos && first[dash] != '}')
      all = split_words(first.substr(dash + 1, first.size() - dash - (first.ends_with('}') ? 2 : 1)));
    else
      return words;
    all.insert(all.end(), words.begin() + 1, words.end());
    return all;
  }

  void sourced(const Argv& words) {
    if (words.size() > 1 && (words[0] == "source" || words[0] == ".") && words[1].find('$') == std::string::npos)
      out.scripts.push_back(words[1]);
  }

  void found(const Program& program, const Argv& words, const std::string& chain, int line, int depth) {
    if (program.kind == ProgramKind::shell)
      return read(program.name, line, depth + 1);
    if (is_plain_tool(program.name) || program.name.starts_with('-')) // or an option that is not known
      return;
    if (is_script_name(program.name))
      out.scripts.push_back(program.name);
    if (program.python || is_script_name(program.name) || !chain.empty())
      out.programs.push_back({line, "", program.name, chain});
    const Row* const framework = framework_of(program, words);
    for (const Option& one : program_options(words, program))
      if (const auto rule = rule_for_flag(program, framework, one.flag, {}); rule && is_moved(rule->cache_class))
        out.caches.push_back({line, "", one.flag, one.value});
  }

  Facts& m_facts;
  Start m_start{{}, "/", {}};
  Environment m_environment;                ///< what the text has assigned so far
  std::map<std::string, Argv> m_values;     ///< the same as words, if they are not empty
  Rules m_rules{{}, When::shared, Guard()}; // guarded, as what it is called by
};

} // namespace

ScriptReport read_script(const std::string& text, Facts& facts) {
  ScriptReader reader(facts);
  reader.read(text, 1, 0);
  return std::move(reader.out);
}

} // namespace sharefs::cachefix

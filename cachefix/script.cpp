#include "cachefix/script.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/rules/rules.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_keywords = "then do else elif if while until ! { } time exec command builtin nohup";
constexpr std::string_view k_exports = "export declare typeset readonly local -x -gx";
constexpr int k_deepest_text = 3; // bash -c in bash -c

struct Command {
  Argv words;
  int line = 1;
  bool directive = false; ///< of a batch script: its options count, and it starts nothing
};

/// A text as commands of words: quotes are taken off, and what the shell would expand stays as it is written.
class Splitter {
 public:
  explicit Splitter(const std::string& text) : m_text(text) {}

  std::vector<Command> split() {
    for (m_at = 0; m_at < m_text.size(); ++m_at)
      take(m_text[m_at]);
    end_command();
    return std::move(m_commands);
  }

 private:
  void take(char c) {
    if (c == '\\') {
      if (m_at + 1 < m_text.size() && m_text[++m_at] != '\n')
        add(m_text[m_at]);
      m_line += m_text[m_at] == '\n' ? 1 : 0;
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '#' && !m_in_word) {
      comment();
    } else if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '`') {
      end_command();
      m_line += c == '\n' ? 1 : 0;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_word();
    } else if (c == '$' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '(') {
      end_command();
    } else {
      add(c);
    }
  }

  void begin_word() {
    if (!m_in_word)
      m_word_line = m_line;
    m_in_word = true;
  }

  void quoted(char quote) {
    begin_word();
    for (++m_at; m_at < m_text.size() && m_text[m_at] != quote; ++m_at) {
      if (quote == '"' && m_text[m_at] == '\\' && m_at + 1 < m_text.size())
        ++m_at;
      m_line += m_text[m_at] == '\n' ? 1 : 0;
      m_word += m_text[m_at];
    }
  }

  /// A directive of a batch system is a command of its own: `#SBATCH --export=NONE` as `sbatch --export=NONE`.
  void comment() {
    const auto end = std::min(m_text.find('\n', m_at), m_text.size());
    const std::string line = m_text.substr(m_at, end - m_at);
    if (line.starts_with("#SBATCH ")) {
      Argv words = split_words(line);
      words.front() = "sbatch";
      words.resize(std::ranges::find(words, "#") - words.begin());
      words.emplace_back("job.sh");
      m_commands.push_back({std::move(words), m_line, true});
    }
    m_at = end - 1;
  }

  void add(char c) {
    begin_word();
    m_word += c;
  }
  void end_word() {
    if (m_in_word && m_words.empty())
      m_first = m_word_line;
    if (m_in_word)
      m_words.push_back(std::exchange(m_word, {}));
    m_in_word = false;
  }
  void end_command() {
    end_word();
    if (!m_words.empty())
      m_commands.push_back({std::exchange(m_words, {}), m_first, false});
  }

  const std::string& m_text;
  std::size_t m_at = 0;
  int m_line = 1;
  int m_word_line = 1, m_first = 1; ///< of the word, and of the command, where they begin
  bool m_in_word = false;
  std::string m_word;
  Argv m_words;
  std::vector<Command> m_commands;
};

bool is_script_name(const std::string& word) {
  return is_listed(word, "*.sh *.bash *.sbatch *.slurm") && word.find('$') == std::string::npos;
}

class ScriptReader {
 public:
  void read(const std::string& text, int first_line, int depth) {
    for (Command& command : Splitter(text).split()) {
      command.line += first_line - 1;
      read_command(std::move(command), depth);
    }
  }

  ScriptReport out;

 private:
  void read_command(Command command, int depth) {
    Argv& words = command.words;
    const auto skips = [&](const std::string& word) { return is_listed(word, k_keywords); };
    words.erase(words.begin(), std::ranges::find_if_not(words, skips));
    if (!words.empty() && is_listed(words.front(), k_exports))
      words.erase(words.begin(),
                  std::ranges::find_if_not(words, [](const auto& word) { return is_listed(word, k_exports); }));
    else if (words.size() > 1 && words.front() == "unset" && std::ranges::count(words, "PYTHONPATH") > 0)
      lose(command.line, "SF407", "unset PYTHONPATH", "takes PYTHONPATH away, so what it starts is not guarded");
    while (!words.empty() && assigns_variable(words.front())) {
      assignment(words.front(), command.line);
      words.erase(words.begin());
    }
    const bool launches = !words.empty() && find_launcher(words, 0, words.size()) != nullptr;
    if (words.empty() || (is_plain_tool(words.front()) && !launches))
      return sourced(words);
    const Walk walked = walk(words, "/");
    if (const Mention loss = loss_of(words, walked); !loss.code.empty())
      lose(command.line, loss.code, loss.subject, loss.says);
    if (command.directive)
      return;
    std::string chain;
    for (const ChainLink& link : walked.chain)
      chain += (chain.empty() ? "" : " ") + link.name;
    for (const Program& program : walked.programs)
      found(program, words, chain, command.line, depth);
  }

  void lose(int line, std::string code, const std::string& subject, const std::string& says) {
    out.losses.push_back({line, std::move(code), subject, says});
  }

  void assignment(const std::string& word, int line) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "PYTHONPATH" && value.find("PYTHONPATH") == std::string::npos)
      lose(line, "SF407", "PYTHONPATH=", "overwrites PYTHONPATH, so what it starts is not guarded");
    const bool known =
        std::ranges::any_of(variable_rules(), [&](const VariableRule& rule) { return rule.name == name; });
    if (known || names_cache(name))
      out.caches.push_back({line, "", name, value});
  }

  void sourced(const Argv& words) {
    if (words.size() > 1 && (words[0] == "source" || words[0] == ".") && words[1].find('$') == std::string::npos)
      out.scripts.push_back(words[1]);
  }

  void found(const Program& program, const Argv& words, const std::string& chain, int line, int depth) {
    if (program.kind == ProgramKind::shell) {
      if (depth < k_deepest_text)
        read(program.name, line, depth + 1);
      return;
    }
    if (is_plain_tool(program.name) || program.name.starts_with('-')) // or an option that is not known
      return;
    if (is_script_name(program.name))
      out.scripts.push_back(program.name);
    if (program.python || is_script_name(program.name) || !chain.empty())
      out.programs.push_back({line, "", program.name, chain});
    const Framework* const framework = framework_of(program, words);
    for (std::size_t i = program.begin; i < program.end; ++i) {
      const auto equals = std::min(words[i].find('='), words[i].size());
      const auto rule =
          words[i].starts_with("--") ? rule_for_flag(program, framework, words[i].substr(0, equals), {}) : std::nullopt;
      if (rule && is_moved(rule->cache_class))
        out.caches.push_back({line, "", words[i].substr(0, equals),
                              equals < words[i].size() ? words[i].substr(equals + 1)
                              : i + 1 < program.end    ? words[i + 1]
                                                       : ""});
    }
  }
};

} // namespace

Mention loss_of(const Argv& words, const Walk& walk) {
  if (walk.elsewhere) {
    const Diagnosis& why = walk.problems.back();
    return {1, why.code, why.subject, why.message};
  }
  const bool runs =
      std::ranges::any_of(walk.programs, [](const Program& program) { return !is_plain_tool(program.name); });
  for (const ChainLink& link : walk.chain) {
    const std::string& word = words[link.index];
    if (const GivenOption* list = link.options.last(Means::assign_list);
        list != nullptr && runs && !any_word(list->value, ',', [](std::string_view one) { return one == "ALL"; }))
      return {1, "SF407", list->name + "=" + list->value,
              "hands on no other variables, so what it starts is not guarded"};
    if (link.options.last(Means::clear) != nullptr && runs)
      return {1, "SF407", word, "empties the environment, so what it starts is not guarded"};
    if (link.launcher->name == "python")
      for (const GivenOption& option : link.options.given)
        if (is_listed(option.name, "-I -E -S"))
          return {1, "SF407", word + " " + option.name, "does not read PYTHONPATH, so it is not guarded"};
  }
  return {};
}

ScriptReport read_script(const std::string& text) {
  ScriptReader reader;
  reader.read(text, 1, 0);
  return std::move(reader.out);
}

} // namespace sharefs::cachefix

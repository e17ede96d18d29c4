// Commands inside of shell text: each is judged as a command line of its own, in the order of the text, and its changed
// words are put back.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/files/config_text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_hint =
    "only words that are literal, or made of variables that the same text assigns literally, are changed";
/// What `eval` is mostly given: the settings of these.
constexpr std::string_view k_harmless_evals[] = {"conda",     "mamba", "direnv", "ssh-agent", "module", "lmod",
                                                 "dircolors", "pyenv", "brew",   "starship",  "getopt", "ssh-add"};

/// What sets up an environment and no caches: conda's and module systems' own.
constexpr std::string_view k_harmless_sources =
    "conda.sh mamba.sh micromamba.sh activate activate_* .bashrc bashrc .bash_profile profile .profile "
    "modules.sh init.sh bash lmod.sh setvars.sh deactivate";

struct Replacement {
  std::size_t begin, end;
  std::string text;
};

bool is_call_of(const ShellCommand& command, std::string_view names) {
  return command.kind == ShellCommand::Kind::call && !command.words.empty() &&
         is_listed(command.words.front().text, names);
}

/// A command that starts a program, which may read the variables that sharefs would set for another.
bool starts_program(const ShellCommand& command) {
  if (command.kind != ShellCommand::Kind::call || command.words.empty())
    return false;
  const Argv start{command.words[0].text, command.words.size() > 1 ? command.words[1].text : ""};
  return !is_plain_tool(start[0]) || find_launcher(start, 0, 2) != nullptr; // `conda activate`, but `conda run`
}

/// Do its directives say that all of it starts in a container? `#SBATCH --container-image=x`.
bool starts_in_container(const std::string& text) {
  return any_word(text, '\n', [](std::string_view line) {
    return std::ranges::any_of(launchers(), [&](const Launcher& row) {
      if (row.directive.empty() || !line.starts_with(row.directive))
        return false;
      const Argv words = split_words(line.substr(row.directive.size()));
      return read_options(row, words, 0, words.size()).last(Means::container) != nullptr;
    });
  });
}

/// May a command of it start a container, in whichever way it is put together?
bool names_container(std::string text) {
  for (auto at = text.find("\\\n"); at != std::string::npos; at = text.find("\\\n", at))
    text.replace(at, 2, "  ");
  return any_word(text, '\n', [](std::string_view line) {
    line = trim(line);
    const std::vector<std::string> words = line.starts_with('#') ? std::vector<std::string>() : split_words(line);
    return !words.empty() && !is_listed(words.front(), "echo printf module ml which type") && starts_container(words);
  });
}

class TextJudge {
 public:
  /// `may_be_offline`: assignments of what is only read offline stay, and programs that build get their own behind
  /// them.
  /// `container`: something in it starts in a container, which reads what the text assigns. Then assignments stay, and
  /// nothing is set around the text.
  TextJudge(const std::string& text, const TextPlace& place, Setting setting, Stakes& stakes, const Rules& rules,
            bool may_be_offline, bool container)
      : m_text(text), m_place(place), m_setting(std::move(setting)), m_stakes(stakes), m_rules(rules),
        m_may_be_offline(may_be_offline), m_container(container) {
    m_setting.outside = m_setting.outside && !container;
  }

  TextFound judge(ShellVariables known) {
    m_out.text = m_text;
    if (!m_place.editable && m_setting.file.empty())
      m_setting.file = m_place.subject;
    if (m_setting.depth > Budget::k_nested_shells)
      return cannot("shell text inside of shell text is read four levels deep only");
    if (is_unknown(m_text))
      return cannot("the shell text is not literal, so it was not read");
    const auto& tree = m_stakes.syntax_tree(m_text);
    if (!tree)
      return cannot("the shell text was not read: `shfmt` is missing or does not understand it");
    for (const auto& [name, value] : m_setting.environment)
      if (!is_unknown(value))
        known.emplace(name, value);
    const auto shell = read_shell(m_text, *tree, m_stakes.budget(), known);
    if (!shell)
      return cannot("the shell text was not read: its syntax tree is not understood");
    m_out.first_statement = shell->first_statement;
    m_not_in_place = not_in_place(*shell);
    m_fixed = shell->fixed;
    m_setting.in_text = true;
    m_setting.editable = m_place.editable;
    m_setting.alone =
        m_setting.alone && m_place.editable && std::ranges::count_if(shell->commands, starts_program) <= 1;
    m_setting.assigned.insert(shell->assigned.begin(), shell->assigned.end());
    for (const ShellCommand& command : shell->commands)
      if (const auto sourced = sourced_text(command))
        m_setting.assigned.insert(sourced->assigned.begin(), sourced->assigned.end());
    for (const ShellWord& one : shell->defaults)
      if (!m_setting.environment.contains(variable_in(one.text)))
        assign(one.text, true);
    for (const ShellCommand& command : shell->commands)
      if (!command.function.empty()) {
        m_bodies[command.function].push_back(&command);
        m_setting.functions.insert(command.function);
      }
    for (const ShellCommand& command : shell->commands)
      if (command.function.empty())
        one_command(command, *shell);
    while (!m_bodies.empty() && !m_stakes.budget().is_spent()) // by other programs, or by nobody
      judge_body(m_bodies.begin()->first, *shell);
    apply();
    return std::move(m_out);
  }

 private:
  TextFound cannot(std::string why) {
    m_out.decisions = {warning("SF403", m_place.subject, std::move(why), std::string(k_hint))};
    return std::move(m_out);
  }

  /// Assignments that stay, so that programs get their own behind them: also of variables that other words are made of.
  std::set<std::string> not_in_place(const ShellText& shell) {
    std::set<std::string> names = shell.expanded;
    if (m_container)
      names.insert(shell.assigned.begin(), shell.assigned.end());
    for (const VariableRule& rule : variable_rules())
      if (std::string name(rule.name); is_listed(name, k_read_offline) && shell.assigned.contains(name)) {
        m_out.assigns_read_offline = true;
        if (m_may_be_offline)
          names.insert(std::move(name));
      }
    return names;
  }

  /// The commands of a function, where it is called first: with what is known of variables there.
  void judge_body(const std::string& name, const ShellText& shell) {
    if (const auto body = m_bodies.extract(name))
      for (const ShellCommand* command : body.mapped())
        one_command(*command, shell);
  }

  /// `NAME=value... FUNCTION`: the assignments hold inside of it.
  void call(const ShellCommand& command, const Argv& argv, const ShellText& shell) {
    if (command.words.empty() || !m_bodies.contains(command.words.front().text))
      return;
    const Environment outside = m_setting.environment;
    Names names;
    for (std::size_t i = 1; i < argv.size() && !command.assignments.empty() && assigns_variable(argv[i]); ++i) {
      assign(argv[i], true);
      names.push_back(variable_in(argv[i]));
    }
    judge_body(command.words.front().text, shell);
    for (const std::string& name : names)
      if (const auto before = outside.find(name); before != outside.end())
        m_setting.environment[name] = before->second;
      else
        m_setting.environment.erase(name);
  }

  void one_command(const ShellCommand& command, const ShellText& shell) {
    if (!m_stakes.budget().take(&Budget::steps, m_setting.environment.size() + 1))
      return;
    if (is_call_of(command, "eval"))
      return evaluate(command, shell);
    if (is_call_of(command, "source ."))
      return source(command, shell);
    if (is_call_of(command, "trap") && command.words.size() > 2 && !is_unknown(command.words[1].text))
      return report_on(command.words[1].text, "trap", command);
    const CommandLine line = command_line(command, m_not_in_place);
    Decisions decisions;
    const bool assigns_only = line.argv.size() > 1 && line.words.back() == nullptr;
    if (!line.argv.empty() && !(assigns_only && m_place.sourced)) {
      m_setting.input = command.input;
      Found found = decide(line.argv, m_setting, m_stakes, m_rules);
      const bool starts = command.kind == ShellCommand::Kind::call && !command.words.empty();
      if (starts && (!is_plain_tool(line.argv[0]) || !found.walk.chain.empty())) {
        for (ScriptFound& script : found.scripts)
          if (!is_plain_tool(script.name))
            m_out.scripts.push_back({m_place.index.value_or(0), shown(script.name), script.framework});
        if (std::ranges::none_of(found.walk.chain,
                                 [](const ChainLink& link) { return link.launcher->name == "sharefs"; }))
          report_hidden(command);
      }
      decisions = std::move(found.decisions);
    }
    put_back(command, line, decisions);
    auto assignments = edited_assignments(line, decisions);
    if (command.words.empty() || command.kind == ShellCommand::Kind::exported)
      for (const auto* words : {&command.assignments, &command.words})
        for (const ShellWord& word : *words)
          if (m_not_in_place.contains(variable_in(word.text)))
            assignments.push_back(word.text);
    follow(command, assignments, shell);
    const Argv changed = edited(line.argv, decisions);
    for (Decision& decision : decisions)
      merge(std::move(decision), line);
    for (const ShellWord& word : command.unknown)
      merge(warning("SF403", shown(word.text), "the names of the variables that are exported here are not known",
                    "write `export NAME=value`, or put `sharefs run --` in front of the program"),
            {{}, {&word}});
    call(command, changed, shell);
  }

  static std::string evaluated(const ShellCommand& command) {
    std::string text;
    for (std::size_t i = 1; i < command.words.size(); ++i)
      text += (i == 1 ? "" : " ") + command.words[i].text;
    return text;
  }

  /// `eval TEXT`: read where it is literal, else said.
  void evaluate(const ShellCommand& command, const ShellText& shell) {
    std::string raw;
    for (const ShellWord& word : command.words)
      raw += m_text.substr(word.begin, word.end - word.begin);
    if (std::ranges::any_of(k_harmless_evals,
                            [&](std::string_view name) { return raw.find(name) != std::string::npos; }))
      return;
    report_on(evaluated(command), "eval", command);
    follow(command, {}, shell);
  }

  /// The file that `source FILE` names; empty: it is not known.
  [[nodiscard]] std::string path_of_sourced(const ShellCommand& command) const {
    const bool known = command.words.size() > 1 && !is_unknown(command.words[1].text + m_setting.directory);
    return known ? normalize_path(command.words[1].text, m_setting.directory) : std::string();
  }

  /// Its text; nullptr: it cannot be read.
  const std::string* sourced_file(const ShellCommand& command) {
    const std::string path = is_call_of(command, "source .") ? path_of_sourced(command) : "";
    if (path.empty() || m_setting.depth >= Budget::k_nested_shells)
      return nullptr;
    const auto& text = m_stakes.text(path);
    return text ? &*text : nullptr;
  }
  /// What `source FILE` or `eval TEXT` reads.
  std::optional<ShellText> sourced_text(const ShellCommand& command) {
    std::optional<std::string> text;
    if (const std::string* file = sourced_file(command))
      text = *file;
    else if (is_call_of(command, "eval"))
      text = evaluated(command);
    if (!text || is_unknown(*text))
      return std::nullopt;
    const auto& tree = m_stakes.syntax_tree(*text);
    return tree ? read_shell(*text, *tree, m_stakes.budget()) : std::nullopt;
  }

  /// What a sourced file starts is reported on, and what it assigns holds for what follows.
  void source(const ShellCommand& command, const ShellText& shell) {
    const std::string path = path_of_sourced(command);
    const std::string name = command.words.size() > 1 ? base_name(command.words[1].text) : "";
    const bool made_here = m_text.find(name) < command.words.back().begin; // `cat > job.env <<EOF` in front of it
    if (const std::string* text = sourced_file(command))
      report_on(*text, command.words[1].text, command);
    else if (!name.empty() && !is_listed(name, k_harmless_sources) &&
             (path.empty() || path.starts_with("/dev/") ||
              (made_here && m_stakes.place(path).kind == sys::EntryKind::missing)))
      merge(warning("SF403", shown(command.words[1].text),
                    "the file that is read here is not known, so nobody knows what it sets", "write its path out"),
            {{}, {&command.words[1]}});
    follow(command, {}, shell);
  }

  void report_on(const std::string& text, const std::string& subject, const ShellCommand& command) {
    Setting setting = m_setting;
    ++setting.depth;
    const TextPlace place{std::nullopt, subject, false, subject != "trap"};
    TextFound found = judge_text(text, place, std::move(setting), m_stakes, m_rules);
    for (Decision& decision : found.decisions)
      merge(std::move(decision), {{}, {&command.words.front()}});
  }

  /// NAME=value holds for what follows. One that may be skipped does not hide a shared path.
  void assign(const std::string& assignment, bool certain) {
    const std::string name = variable_in(assignment);
    std::string& value = m_setting.environment[name];
    if (certain || !value.starts_with('/') || !m_stakes.is_shared(value))
      value = assignment.substr(std::min(name.size() + 1, assignment.size()));
  }

  /// What a command changes for those behind it. `assignments`: as they are after the changes.
  void follow(const ShellCommand& command, const std::vector<std::string>& assignments, const ShellText& shell) {
    for (const std::string& one : assignments)
      if (const std::string name = variable_in(one); command.kind == ShellCommand::Kind::exported ||
                                                     shell.exports_all || shell.exported.contains(name) ||
                                                     m_setting.environment.contains(name))
        assign(one, command.certain);
    const Deeper deeper(m_stakes.budget());
    if (auto sourced = deeper ? sourced_text(command) : std::nullopt) {
      sourced->exports_all = sourced->exports_all || shell.exports_all;
      sourced->exported.insert(shell.exported.begin(), shell.exported.end());
      for (const ShellCommand& inner : sourced->commands)
        follow(inner, edited_assignments(command_line(inner, {}), {}), *sourced);
    }
    if (is_call_of(command, "unset"))
      for (const ShellWord& word : command.words)
        m_setting.environment.erase(word.text);
    if (is_call_of(command, "read mapfile readarray") && !command.reads.empty())
      m_filled[command.words.back().text] = command.reads;
    if (is_call_of(command, "read getopts mapfile readarray printf")) // printf -v
      for (const ShellWord& word : command.words)
        if (shell.exports_all || shell.exported.contains(word.text) || m_setting.environment.contains(word.text))
          assign(word.text + "=" + k_unknown_part, command.certain);
    if (!is_call_of(command, "cd pushd popd"))
      return;
    const bool known = command.certain && command.words.size() == 2 && !is_unknown(command.words[1].text) &&
                       command.words[1].text != "-";
    // An unknown directory makes relative paths unknown, and nothing else.
    m_setting.directory =
        known ? normalize_path(command.words[1].text, m_setting.directory) : std::string("/") + k_unknown_part;
  }

  /// The assignments of a command that starts nothing, after the changes.
  static std::vector<std::string> edited_assignments(const CommandLine& line, const Decisions& decisions) {
    if (!line.has_env() || line.argv.back() != "true" || line.words.back() != nullptr)
      return {};
    Argv argv = edited(line.argv, decisions);
    return {argv.begin() + 1, argv.end() - 1};
  }

  /// The word of a --cache_dir in a file that `$(cat FILE)` or `$(< FILE)` names, or that `mapfile` has read.
  std::string cache_dir_in_file(const ShellWord& word) {
    std::string raw = m_text.substr(word.begin, word.end - word.begin);
    if (!is_unknown(word.text) || is_unknown(m_setting.directory))
      return {};
    for (const auto& [variable, file] : m_filled)
      if (raw.find("$" + variable) != std::string::npos || raw.find("{" + variable) != std::string::npos)
        raw = "(" + file;
    if (raw.find_first_of("(`") == std::string::npos)
      return {};
    std::ranges::replace_if(
        raw, [](char c) { return std::string_view("$()<`\"'").find(c) != std::string_view::npos; }, ' ');
    for (const std::string& name : split_words(raw))
      if (const auto& text = m_stakes.text(normalize_path(name, m_setting.directory)))
        return cache_dir_of_arguments(*text).value_or("");
    return {};
  }

  /// Says of words that are made of a variable with a `--cache_dir` in it that they were not changed.
  void report_hidden(const ShellCommand& command) {
    for (const ShellWord& word : command.words) {
      const std::string hidden = word.hidden.empty() ? cache_dir_in_file(word) : word.hidden;
      const bool literal = hidden.find_first_of("$`") == std::string::npos;
      if (hidden.empty() || (literal && !m_stakes.is_shared(normalize_path(hidden, m_setting.directory))))
        continue;
      merge(warning("SF403", shown(word.text), "holds a `--cache_dir`, and options inside of variables are not changed",
                    "write `--cache_dir` where the command is, or put only the path into a variable"),
            {{}, {&word}});
    }
  }

  static std::string quoted(const std::string& word) {
    // `NAME=value` in front of a command must keep its name unquoted to stay an assignment.
    const auto equals = word.find('=');
    return assigns_variable(word) ? word.substr(0, equals + 1) + shell_quote(word.substr(equals + 1))
                                  : shell_quote(word);
  }

  /// The word behind the assignments, and behind `exec`.
  static const ShellWord* program_of(const CommandLine& line) {
    const auto found = std::ranges::find_if(
        line.words, [](const ShellWord* word) { return word != nullptr && !assigns_variable(word->text); });
    return found == line.words.end() ? nullptr : *found;
  }

  void put_back(const ShellCommand& command, const CommandLine& line, const Decisions& decisions) {
    for (const auto& [index, change] : word_changes(line.argv, decisions)) {
      const ShellWord* word = index < line.words.size() ? line.words[index] : nullptr;
      for (const std::string& inserted : change.before) {
        const bool in_front = index == 0 && assigns_variable(inserted);
        const bool by_env = in_front && m_fixed.contains(variable_in(inserted)); // which the shell does not assign
        const ShellWord* at = by_env                        ? program_of(line)
                              : !in_front                   ? word
                              : command.assignments.empty() ? &command.words.front()
                                                            : &command.assignments.front();
        if (at != nullptr)
          m_replacements.push_back({at->begin, at->begin, (by_env ? "env " : "") + quoted(inserted) + " "});
      }
      if (word == nullptr)
        continue;
      if (change.gone) {
        std::size_t begin = word->begin; // with the blanks in front of it, but never a line's end
        while (begin > 0 && (m_text[begin - 1] == ' ' || m_text[begin - 1] == '\t'))
          --begin;
        m_replacements.push_back({begin, word->end, ""});
      } else if (change.text) {
        m_replacements.push_back(
            {word->begin, word->end, line.has_env() ? quoted(*change.text) : shell_quote(*change.text)});
      }
    }
  }

  void apply() {
    if (!m_place.editable)
      return;
    std::ranges::stable_sort(m_replacements, {}, &Replacement::begin);
    std::string out;
    std::size_t at = 0;
    for (const Replacement& one : m_replacements) {
      if (one.begin < at || one.end > m_text.size())
        continue;
      out += m_text.substr(at, one.begin - at) + one.text;
      at = one.end;
    }
    m_out.text = out + m_text.substr(at);
  }

  std::string place_of(const ShellWord& word) const {
    return m_place.subject + ":" + std::to_string(word.line) + ":" + std::to_string(word.column);
  }

  [[nodiscard]] bool is_said(const Decision& decision) const {
    return std::ranges::any_of(m_out.decisions, [&](const Decision& one) {
      return one.diagnosis && one.diagnosis->code == decision.diagnosis->code && one.flag == decision.flag;
    });
  }

  /// What an inner command found, seen from the outer command line.
  void merge(Decision&& decision, const CommandLine& line) {
    const ShellWord* word =
        decision.index && *decision.index < line.words.size() ? line.words[*decision.index] : nullptr;
    decision.flag = shown(decision.flag);
    if (decision.from)
      decision.from = shown(*decision.from);
    if (decision.diagnosis) {
      Diagnosis& diagnosis = *decision.diagnosis;
      diagnosis.subject = shown(std::move(diagnosis.subject));
      diagnosis.message = shown(std::move(diagnosis.message));
      if ((diagnosis.code == "SF403" && is_said(decision)) || (diagnosis.code == "SF422" && !m_place.editable))
        return; // of the assignment itself; of what is not moved
      if (!m_place.index && !line.words.empty() && line.words.back() != nullptr &&
          !diagnosis.subject.starts_with(m_place.subject + ":"))
        diagnosis.subject = place_of(*line.words.back()) + ": " + diagnosis.subject;
    } else if (!decision.edits.empty() && !m_place.editable) {
      const std::string file = shell_quote(m_setting.file);
      const std::string where = word == nullptr ? m_place.subject : place_of(*word);
      const bool goes_along = decision.variable && !decision.rule.starts_with("variable."); // with a flag
      if (!goes_along && !decision.rule.starts_with("propagate."))
        decision =
            warning("SF415", where, "`" + decision.flag + "` in it lies on shared storage; the file was not changed",
                    is_listed(file, "eval trap")
                        ? "write the command without `" + file + "`"
                        : "run `sharefs cachefix script " + file +
                              " --write COPY --yes` and start the copy, or put `sharefs run --` into it");
      else
        return;
    } else if (!m_place.index && word != nullptr && decision.is_change()) {
      decision.reason += " (" + place_of(*word) + ")";
    }
    decision.edits.clear();
    if (decision.kind != ChangeKind::environment) {
      decision.index = m_place.index;
      decision.variable = false;
    }
    add_once(m_out.decisions, std::move(decision));
  }

  const std::string& m_text;
  const TextPlace& m_place;
  Setting m_setting;
  Stakes& m_stakes;
  const Rules& m_rules;
  const bool m_may_be_offline, m_container;
  std::set<std::string> m_not_in_place;
  std::map<std::string, std::string> m_filled;                      ///< variables by `mapfile < FILE` -> that file
  std::set<std::string> m_fixed;                                    ///< variables that the text makes read-only
  std::map<std::string, std::vector<const ShellCommand*>> m_bodies; ///< of functions, not judged yet
  std::vector<Replacement> m_replacements;
  TextFound m_out;
};

} // namespace

TextFound judge_text(const std::string& text, const TextPlace& place, Setting setting, Stakes& stakes,
                     const Rules& rules, ShellVariables known) {
  const Deeper deeper(stakes.budget());
  if (!deeper)
    return {.text = text, .decisions = {}, .scripts = {}};
  if (starts_in_container(text)) {
    auto said = warning("SF404", place.subject, "as a batch script " + std::string(k_in_container),
                        std::string(k_into_container));
    return {.text = text, .decisions = {std::move(said)}, .scripts = {}};
  }
  bool container = names_container(text);
  const auto judge = [&](bool may_be_offline) {
    return TextJudge(text, place, setting, stakes, rules, may_be_offline, container).judge(known);
  };
  TextFound found = judge(true);
  if (!container && is_in_container(found.decisions)) { // of a file that it starts
    container = true;
    found = judge(true);
  }
  const bool offline = std::ranges::any_of(
      found.decisions, [](const Decision& one) { return one.diagnosis && one.diagnosis->code == "SF419"; });
  if (found.assigns_read_offline && !offline)
    found = judge(false);
  if (container && !is_in_container(found.decisions)) // in a variable, by a name of its own
    found.decisions.push_back(warning("SF404", place.subject,
                                      "it names a container, so nothing that may reach one was changed",
                                      std::string(k_into_container)));
  return found;
}

} // namespace sharefs::cachefix

#include "cachefix/shell_sanitize.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/shell.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr int k_most_nested_shells = 4;
constexpr std::string_view k_hint =
    "only words that are literal, or made of variables that the same text assigns literally, are changed";
/// Builtins, and tools that read none of the variables that say where caches are.
constexpr std::string_view k_builtins =
    "cd export set source . echo printf test [ [[ true false : exit return shift ulimit umask unset read wait "
    "trap eval local declare pushd popd module ml mkdir rm cp mv ln ls cat sleep date hostname chmod touch tee "
    "grep sed awk which conda mamba deactivate activate nvidia-smi head tail wc sort tr cut basename dirname "
    "scontrol kill sync df du squeue sinfo scancel sacct sstat rsync tar unzip gzip gunzip zstd curl wget git "
    "seq stat chown realpath readlink mktemp nproc free uname id whoami printenv ps pgrep pkill jobs let typeset "
    "readonly alias shopt getopts type hash times yes clear lfs ip ifconfig ping";

struct Replacement {
  std::size_t begin, end;
  std::string text;
};

std::string place_of(const ShellScope& scope, const ShellWord& word) {
  return scope.subject + ":" + std::to_string(word.line) + ":" + std::to_string(word.column);
}

bool is_unknown(const std::string& text) {
  return text.find(k_unknown_part) != std::string::npos;
}

/// `$NAME` where an expansion is not known.
std::string shown(std::string text) {
  std::replace(text.begin(), text.end(), k_unknown_part, '$');
  return text;
}

/// One command of the text as an argv of its own: assignments in front become words of env(1).
struct Line {
  Argv argv;
  std::vector<const ShellWord*> words; ///< per word of argv; nullptr for the `env` that is not there
};

Line line_of(const ShellCommand& command) {
  Line line;
  const auto add = [&line](const ShellWord& word) {
    line.argv.push_back(word.text);
    line.words.push_back(&word);
  };
  const bool exported = command.kind == ShellCommand::Kind::exported;
  if (exported || !command.assignments.empty()) {
    line.argv.emplace_back("env");
    line.words.push_back(nullptr);
  }
  for (const ShellWord& word : command.assignments)
    add(word);
  // `exec` and `command` run what follows; with options of their own they stay the program, which nobody knows.
  std::size_t first = 0;
  while (first + 1 < command.words.size() &&
         (command.words[first].text == "exec" || command.words[first].text == "command") &&
         !command.words[first + 1].text.starts_with('-'))
    ++first;
  for (std::size_t i = first; i < command.words.size(); ++i)
    add(command.words[i]);
  if (exported || command.words.empty()) { // a program for the variables: what follows in the text
    line.argv.emplace_back("true");
    line.words.push_back(nullptr);
  }
  return line;
}

/// A command that starts a program, which may read the variables that sharefs would set for another.
bool starts_program(const ShellCommand& command) {
  if (command.kind != ShellCommand::Kind::call || command.words.empty())
    return false;
  const std::string& name = command.words.front().text;
  const auto next = command.words.size() > 1 ? std::optional<std::string_view>(command.words[1].text) : std::nullopt;
  return !is_listed(name, k_builtins) || find_launcher(name, next) != nullptr; // `conda activate`, but `conda run`
}

/// Behind a `sharefs run` in the text, which knows more when it runs.
bool sees_to_itself(const Sanitized& found) {
  return std::any_of(found.chain.begin(), found.chain.end(), [](const auto& link) { return link.first == "sharefs"; });
}

/// What commands change for those behind them.
struct Running {
  std::vector<std::string> environment;
  std::string directory;
};

void follow(const ShellCommand& command, Running& running) {
  if (command.kind == ShellCommand::Kind::exported) {
    for (const ShellWord& word : command.words) {
      const std::string name = word.text.substr(0, word.text.find('=') + 1);
      std::erase_if(running.environment, [&](const std::string& entry) { return entry.starts_with(name); });
      if (!is_unknown(word.text))
        running.environment.push_back(word.text);
    }
    return;
  }
  if (command.words.empty() || !is_listed(command.words[0].text, "cd pushd popd"))
    return;
  const bool known = command.certain && command.words.size() == 2 && !is_unknown(command.words[1].text) &&
                     command.words[1].text != "-";
  // An unknown directory makes relative paths unknown, and nothing else.
  running.directory =
      known ? normalize_path(command.words[1].text, running.directory) : std::string("/") + k_unknown_part;
}

void put_back(const Line& line, const std::map<std::size_t, WordEdit>& edits, const std::string& text,
              std::vector<Replacement>& out) {
  for (const auto& [index, edit] : edits) {
    const ShellWord* word = index < line.words.size() ? line.words[index] : nullptr;
    std::string before;
    for (const std::string& inserted : edit.before)
      before += shell_quote(inserted) + " ";
    if (word == nullptr) {
      continue; // in front of the `true` that is not there: nothing is run
    }
    if (edit.dropped) {
      std::size_t begin = word->begin; // with the blanks in front of it, but never a line's end
      while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t'))
        --begin;
      out.push_back({begin, word->end, ""});
      continue;
    }
    if (!before.empty())
      out.push_back({word->begin, word->begin, before});
    if (!edit.text)
      continue;
    // `NAME=value` in front of a command must keep its name unquoted to stay an assignment.
    const auto equals = edit.text->find('=');
    const bool assigns = equals != std::string::npos && line.argv[0] == "env" && line.words[0] == nullptr;
    out.push_back({word->begin, word->end,
                   assigns ? edit.text->substr(0, equals + 1) + shell_quote(edit.text->substr(equals + 1))
                           : shell_quote(*edit.text)});
  }
}

std::string apply(const std::string& text, std::vector<Replacement> replacements) {
  std::stable_sort(replacements.begin(), replacements.end(),
                   [](const Replacement& a, const Replacement& b) { return a.begin < b.begin; });
  std::string out;
  std::size_t at = 0;
  for (const Replacement& one : replacements) {
    if (one.begin < at || one.end > text.size())
      continue;
    out += text.substr(at, one.begin - at) + one.text;
    at = one.end;
  }
  return out + text.substr(at);
}

/// Says of words that are made of a variable with a `--cache_dir` in it that they were not changed.
void report_hidden(Draft& inner, const ShellCommand& command) {
  Program here;
  here.directory = inner.facts.directory;
  for (const ShellWord& word : command.words) {
    const bool literal = word.hidden.find_first_of("$`") == std::string::npos;
    const auto path = literal && !word.hidden.empty() ? inner.absolute(here, word.hidden) : std::nullopt;
    const sys::Entry* place = path ? inner.place(*path) : nullptr;
    if (!word.hidden.empty() && (!literal || (place != nullptr && place->shared)))
      inner.diagnose(Severity::warning, "SF403", shown(word.text),
                     "holds a `--cache_dir`, and options inside of variables are not changed",
                     "write `--cache_dir` where the command is, or put only the path into a variable");
  }
}

/// What an inner command found, seen from the outer command line.
void merge(Draft& draft, Sanitized&& inner, const ShellScope& scope, const Line& line) {
  const auto from = [&](const std::optional<std::size_t>& index) -> const ShellWord* {
    return index && *index < line.words.size() ? line.words[*index] : nullptr;
  };
  for (Change& change : inner.changes) {
    if (const ShellWord* word = from(change.index); word != nullptr && !scope.index)
      change.reason += " (" + place_of(scope, *word) + ")";
    if (change.from)
      change.from = shown(*change.from);
    if (change.kind == ChangeKind::argument)
      change.index = scope.index;
    add_once(draft.out.changes, std::move(change));
  }
  for (Kept& kept : inner.kept) {
    kept.index = scope.index;
    draft.keep(shown(kept.flag), kept.index, shown(kept.value), kept.cache_class, kept.reason);
  }
  for (Diagnosis& diagnosis : inner.diagnoses) {
    diagnosis.subject = shown(std::move(diagnosis.subject));
    diagnosis.message = shown(std::move(diagnosis.message));
    if (!scope.index && !line.words.empty() && line.words.back() != nullptr)
      diagnosis.subject = place_of(scope, *line.words.back()) + ": " + diagnosis.subject;
    add_once(draft.out.diagnoses, std::move(diagnosis));
  }
  draft.out.set = std::move(inner.set);
  draft.out.unset = std::move(inner.unset);
  const auto append = [](auto& to, auto& items) {
    for (auto& item : items)
      add_once(to, std::move(item));
  };
  append(draft.out.directories, inner.directories);
  append(draft.out.links, inner.links);
  append(draft.out.copies, inner.copies);
  draft.out.origins.merge(inner.origins);
  draft.out.questions.merge(std::move(inner.questions));
}

} // namespace

std::optional<std::string> sanitize_shell(Draft& draft, const std::string& text, const ShellScope& scope,
                                          std::vector<ScriptFound>& programs) {
  const auto cannot = [&](std::string why) {
    draft.diagnose(Severity::warning, "SF403", scope.subject, std::move(why), std::string(k_hint));
    return std::nullopt;
  };
  if (scope.depth > k_most_nested_shells)
    return cannot("shell text inside of shell text is read four levels deep only");
  if (is_unknown(text))
    return cannot("the shell text is not literal, so it was not read");
  const auto* tree = draft.tree(text);
  if (tree == nullptr)
    return std::nullopt;
  if (!*tree)
    return cannot("the shell text was not read: `shfmt` is missing or does not understand it");
  const auto shell = read_shell(text, **tree);
  if (!shell)
    return cannot("the shell text was not read: its syntax tree is not understood");
  std::vector<Replacement> replacements;
  Running running{draft.facts.environment, scope.directory};
  const bool alone = scope.alone && std::count_if(shell->commands.begin(), shell->commands.end(), starts_program) <= 1;
  for (const ShellCommand& command : shell->commands) {
    const Line line = line_of(command);
    if (!line.argv.empty()) {
      Facts facts = draft.facts;
      facts.environment = running.environment;
      facts.directory = running.directory;
      Draft inner(line.argv, facts, draft.rules);
      inner.out.set = draft.out.set;
      inner.out.unset = draft.out.unset;
      inner.carries = scope.carries;
      inner.alone = alone;
      inner.can_write = draft.can_write;
      inner.elsewhere = scope.elsewhere;
      inner.depth = scope.depth + 1;
      sanitize_draft(inner);
      const bool builtin =
          is_listed(line.argv[0], k_builtins) || command.kind == ShellCommand::Kind::exported || command.words.empty();
      if (!builtin || !inner.out.chain.empty())
        for (ScriptFound& script : inner.out.scripts)
          if (command.kind == ShellCommand::Kind::call && !command.words.empty() &&
              !is_listed(base_name(script.name), k_builtins))
            programs.push_back({scope.index.value_or(0), shown(script.name), script.framework});
      if (sees_to_itself(inner.out))
        continue;
      if (!builtin)
        report_hidden(inner, command);
      put_back(line, inner.edits, text, replacements);
      merge(draft, std::move(inner.out), scope, line);
    }
    follow(command, running);
  }
  if (replacements.empty())
    return std::nullopt;
  return apply(text, std::move(replacements));
}

ScriptResult sanitize_script(const std::string& file, const std::string& text, const Facts& facts, const Rules& rules) {
  const Argv argv = {"bash", file};
  Draft draft(argv, facts, rules);
  draft.can_write = false;
  ShellScope scope;
  scope.subject = file;
  scope.directory = facts.directory;
  ScriptResult result;
  std::vector<ScriptFound> programs;
  auto changed = sanitize_shell(draft, text, scope, programs);
  result.text = changed ? *std::move(changed) : text;
  const auto* tree = draft.tree(text);
  const auto shell = tree != nullptr && *tree ? read_shell(text, **tree) : std::nullopt;
  if (shell && (!draft.out.set.empty() || !draft.out.unset.empty())) {
    std::string exports;
    for (const auto& [name, value] : draft.out.set)
      exports += "export " + name + "=" + shell_quote(value) + "\n";
    for (const std::string& name : draft.out.unset)
      exports += "unset " + name + "\n";
    // Nothing in front of the first statement is ever changed, so the offset holds in the new text too.
    result.text.insert(std::min(shell->first_statement, result.text.size()), exports);
  }
  draft.out.scripts = std::move(programs);
  result.sanitized = std::move(draft.out);
  return result;
}

} // namespace sharefs::cachefix

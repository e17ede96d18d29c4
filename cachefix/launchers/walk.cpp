#include "cachefix/launchers/walk.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_most_launchers = 64; // in one command line
constexpr int k_most_unknown = 4;            // nested programs without a row

/// Walks through a command line. `scope` is the program with the changes of the launchers that were read so far.
class Walker {
 public:
  Walker(const Argv& argv, int depth) : m_argv(argv), m_depth(depth) {}

  Walk run(const std::string& directory) {
    Program scope;
    scope.directory = directory;
    walk_command(0, m_argv.size(), scope);
    return std::move(m_out);
  }

 private:
  [[nodiscard]] bool is_certain() const { return m_unknown == 0; }

  /// Ends the walk at words that are not understood: the program that they run gets the environment and no other
  /// change.
  void give_up(std::size_t index, const Program& scope, std::string message = {}) {
    m_out.understood = false;
    const std::size_t at = std::min(index, m_argv.size() - 1);
    if (runs_container(at, m_argv.size()))
      return end_in_container(at);
    if (!message.empty() && is_certain())
      warn("SF401", index, std::move(message), "its own words were not changed");
    if (!walk_unknown(at, m_argv.size(), scope))
      add_program(ProgramKind::program, at, m_argv.size(), m_argv.size(), scope, true);
  }
  void warn(std::string code, std::size_t index, std::string says, std::string hint = Mention().hint) {
    const std::string subject = index < m_argv.size() ? m_argv[index] : "command line";
    m_out.problems.push_back({1, std::move(code), subject, std::move(says), std::move(hint)});
  }
  /// Ends the walk, because the program starts where neither this environment nor these paths count.
  void end_elsewhere(Mention why) {
    m_out.understood = false;
    m_out.elsewhere = true;
    m_out.programs.clear();
    m_out.problems.push_back(std::move(why));
  }
  void end_in_container(std::size_t index) { end_elsewhere(starts_in_container(m_argv[index])); }
  /// Ends the walk at a program that takes the environment away from its command; `does` is the message about it.
  void end_unreached(std::size_t index, const std::string& does, const Program& scope) {
    if (runs_container(index + 1, m_argv.size()))
      return end_in_container(index);
    end_elsewhere({1, "SF402", m_argv[index], does + ", so it is not guarded"});
    m_out.elsewhere = is_certain(); // behind a program without a row the word may be an argument
    if (!is_certain())
      give_up(index, scope);
  }

  void add_program(ProgramKind kind, std::size_t index, std::size_t begin, std::size_t end, Program scope, bool python,
                   const std::string& name = {}) {
    scope.kind = kind;
    scope.index = index;
    scope.name = name.empty() ? m_argv[index] : name;
    scope.begin = std::min(begin, end);
    scope.end = find_word("--", scope.begin, end);
    scope.python = python || !is_certain();
    if (runs_container(scope.end, end)) // `launcher.py -- docker run ...`
      return end_in_container(scope.end);
    m_out.programs.push_back(std::move(scope));
  }

  /// Returns the index of the first of argv[begin, end) that is `word`, else `end`.
  [[nodiscard]] std::size_t find_word(std::string_view word, std::size_t begin, std::size_t end) const {
    while (begin < end && m_argv[begin] != word)
      ++begin;
    return begin;
  }

  /// Returns the index of the first word behind argv[at] and the launcher's verb.
  [[nodiscard]] static std::size_t index_behind_verb(const Launcher& launcher, std::size_t at) {
    return at + (launcher.verbs.empty() ? 1 : 2);
  }

  /// Walks through argv[begin, end), which is a program and its arguments.
  void walk_command(std::size_t begin, std::size_t end, const Program& scope) {
    if (begin >= end || m_out.elsewhere)
      return;
    const Launcher* launcher = find_launcher(m_argv, begin, end);
    if (launcher == nullptr)
      return walk_program(begin, end, scope);
    walk_launcher(*launcher, base_name(m_argv[begin]), begin, index_behind_verb(*launcher, begin), end, scope);
  }

  /// True if a program of the row `known` may start Python with these words; false for `tmux ls` or `sudo nvidia-smi`.
  [[nodiscard]] bool runs_something(const Row& known, std::size_t begin, std::size_t end) const {
    auto words = std::span(m_argv).subspan(begin, end - begin);
    const bool first = known.has("first"); // the command is the first word behind the options
    while (first && !words.empty() && (words[0].starts_with('-') || assigns_variable(words[0])))
      words = words.subspan(words.size() > 1 && is_listed(words[0], known.get("first")) ? 2 : 1);
    const bool shows =
        !words.empty() && is_listed(words.back(), words_of("shows")) && !names_some_program(words, m_depth);
    if (shows || (!words.empty() && is_listed(words.front(), known.get("nouns"))))
      return false; // `tmux new -d nvidia-smi`, `docker volume create`
    if (known.has("by") && !any_listed(words, known.get("by")))
      return false;
    return known.has("container") || known.has("input") || (known.has("by") && !known.has("names")) ||
           (first ? starts_program(words, m_depth) : names_some_program(words, m_depth));
  }

  /// True if a word starts a container with the words behind it, or is an option that makes Slurm start one.
  [[nodiscard]] bool runs_container(std::size_t begin, std::size_t end) const {
    for (std::size_t at = begin; at < end; ++at) {
      const Row* known = find_opaque(m_argv[at]);
      if (is_listed(m_argv[at], "--container* --no-container* --singularity-container*") ||
          (known != nullptr && known->has("container") && runs_something(*known, at + 1, end)))
        return true;
    }
    return false;
  }

  /// True if argv[at], a word behind a program without a row, is another program or names one. Names that are also
  /// common words only count with an option or a variable behind them. The `ssh` of `--launcher ssh` is a value and
  /// does not count.
  [[nodiscard]] bool names_program(std::size_t at, std::size_t end) const {
    constexpr std::string_view k_common = "env time nice ds sh conda docker uv script timeout tune composer fabric";
    const std::string word = base_name(m_argv[at]);
    if (m_argv[at].starts_with('-') || assigns_variable(m_argv[at]))
      return false;
    if (word.ends_with(".py") || word.ends_with(".sh"))
      return word.find('*') == std::string::npos &&
             !is_listed(m_argv[at - 1], "-name -iname -path"); // a pattern of find(1)
    if (find_launcher(m_argv, at, end) != nullptr)
      return !is_listed(word, k_common) ||
             (at + 1 < end && (m_argv[at + 1].starts_with('-') || assigns_variable(m_argv[at + 1])));
    const Row* known = find_opaque(m_argv[at]);
    return known != nullptr && !known->has("container") && !m_argv[at - 1].starts_with("--") &&
           runs_something(*known, at + 1, end);
  }

  void walk_program(std::size_t begin, std::size_t end, const Program& scope) {
    const std::string name = base_name(m_argv[begin]);
    const Row* known = find_opaque(m_argv[begin]);
    if (known != nullptr && any_listed(std::span(m_argv).subspan(begin + 1, end - begin - 1), known->get("unless")))
      known = nullptr;
    if (known != nullptr && runs_something(*known, begin + 1, end)) {
      if (!known->has("container"))
        return end_unreached(begin, "`" + name + "` " + known->get("does"), scope);
      end_in_container(begin);
      m_out.container = is_certain() ? std::optional(begin) : std::nullopt;
      return;
    }
    if (assigns_variable(m_argv[begin])) {
      m_out.understood = false;
      return warn("SF402", begin, "only a shell takes a variable's value in front of a command",
                  hint_for_assignment(m_argv[begin]));
    }
    if (name.ends_with(".py") && m_argv[begin].find('/') != std::string::npos)
      return walk_python_file(begin, end, scope);
    const bool starts_here =
        known == nullptr || (known->has("by") && !known->has("container")); // such as parallel without -S
    if (starts_here && !is_plain_tool(name) && runs_container(begin + 1, end))
      return end_in_container(begin);
    m_out.understood = m_out.understood && starts_here; // words such as `sudo nvidia-smi -pm 1`
    const bool script = name.ends_with(".sh") || name.ends_with(".bash") || is_plain_tool(name);
    if (starts_here && !script && walk_unknown(begin + 1, end, scope))
      return;
    add_program(ProgramKind::program, begin, begin + 1, end, scope, is_listed(name, words_of("python")));
  }

  /// True if a word is a command line, as in `flock FILE -c 'env -i python train.py'`.
  [[nodiscard]] bool is_text(const std::string& word) const {
    const Argv parts = word.find(' ') == std::string::npos ? Argv() : split_words(word);
    if (parts.empty())
      return false;
    return (find_opaque(parts[0]) != nullptr && any_listed(parts, "-*")) || // no message as "docker run failed"
           ((is_known_command(parts, 0) || assigns_variable(parts[0])) &&
            names_some_program(std::span(parts).subspan(1), m_depth));
  }

  /// Walks through argv[begin, end) behind a program without a row (strace, make, a wrapper of the site) or behind an
  /// unknown option. Nobody knows how these words are run. False if none of them names a program.
  bool walk_unknown(std::size_t begin, std::size_t end, const Program& scope) {
    while (begin < end && !is_text(m_argv[begin]) && !names_program(begin, end))
      ++begin;
    if (begin >= end || m_unknown == k_most_unknown)
      return false;
    m_out.understood = false;
    const std::size_t before = m_out.programs.size();
    ++m_unknown;
    if (is_text(m_argv[begin]))
      add_program(ProgramKind::shell, begin, end, end, scope, true);
    else
      walk_command(begin, end, scope);
    --m_unknown;
    return m_out.elsewhere || m_out.programs.size() > before;
  }

  /// Walks through a launcher. Its options start at `begin`; its own word is argv[index].
  void walk_launcher(const Launcher& launcher, std::string name, std::size_t index, std::size_t begin, std::size_t end,
                     Program scope) {
    if (m_out.chain.size() == k_most_launchers)
      return give_up(index, scope, "too many launchers stand one behind the other");
    ChainLink& link = m_out.chain.emplace_back();
    link.launcher = &launcher;
    link.name = std::move(name);
    link.index = index;
    link.certain = is_certain();
    scope.chain.push_back(&link);
    if (launcher.tail == Tail::contexts)
      return walk_contexts(link, begin, end, scope);
    if (const auto at = walk_options(link, begin, end, scope))
      walk_tail(link, *at, end, scope);
  }

  /// Walks through commands that are separated by `:`, each with options of its own.
  void walk_contexts(ChainLink& first, std::size_t begin, std::size_t end, Program scope) {
    for (ChainLink* link = &first; begin < end && !m_out.elsewhere;) {
      const std::size_t stop = find_word(":", begin, end);
      Program own = scope;
      if (const auto at = walk_options(*link, begin, stop, own); at && *at < stop) {
        link->command = *at;
        walk_command(*at, stop, own);
      }
      begin = stop + 1;
      if (begin >= end)
        return;
      if (m_out.chain.size() >= k_most_launchers)
        return give_up(begin, scope, "too many commands stand one behind the other");
      link = &m_out.chain.emplace_back(*link);
      link->command = 0;
      scope.chain.back() = link;
    }
  }

  /// Reads a launcher's options into the chain and applies them to the scope. Returns where the tail begins; nullopt if
  /// nothing is run or an option is not understood.
  std::optional<std::size_t> walk_options(ChainLink& link, std::size_t begin, std::size_t end, Program& scope) {
    OptionsRead read = read_options(*link.launcher, m_argv, begin, end);
    const auto container = std::ranges::find(read.given, Means::container, &GivenOption::means);
    if (container != read.given.end()) { // this counts even if another option is not known
      end_in_container(container->index);
      return std::nullopt;
    }
    Program own;
    own.directory = scope.directory;
    for (const GivenOption& option : read.given)
      if (option.means)
        apply_option(option, own);
    apply_options(std::move(own), scope);
    const bool nothing_runs = read.last(Means::information) != nullptr;
    OptionsRead& all = link.options;
    read.given.insert(read.given.begin(), all.given.begin(), all.given.end());
    all = std::move(read);
    if (nothing_runs)
      return std::nullopt;
    if (all.problem.empty())
      return all.end;
    give_up(all.end, scope, all.problem);
    return std::nullopt;
  }

  /// Applies the changes of one launcher's options to the environment and the directory that it was given.
  static void apply_options(Program own, Program& scope) {
    std::erase_if(scope.assigned, [&](const Assignment& one) { return own.takes_away(one.name); });
    std::ranges::move(own.assigned, std::back_inserter(scope.assigned));
    std::ranges::move(own.unset, std::back_inserter(scope.unset));
    if (own.cleared)
      scope.kept = std::move(own.kept);
    scope.cleared = scope.cleared || own.cleared;
    scope.directory = std::move(own.directory);
  }

  void apply_option(const GivenOption& option, Program& scope) {
    // The first of two words is not in that word: the difference wraps around, and assign() comes back to 0.
    const std::size_t begin = m_argv[option.value_index].size() - option.value.size();
    switch (*option.means) {
    case Means::directory:
      scope.directory = normalize_path(option.value, scope.directory);
      break;
    case Means::assign:
    case Means::assign_pair:
      assign(scope, option.value, option.value_index, begin);
      break;
    case Means::assign_list:
      return assign_list(scope, option, begin);
    case Means::unset:
      scope.unset.push_back(option.value.starts_with('-') ? option.value.substr(1) : option.value);
      break;
    case Means::clear:
      scope.cleared = true;
      break;
    default:
      break;
    }
  }

  /// Adds NAME=value, which begins at byte `begin` of argv[index]. False if the text has no `=`.
  static bool assign(Program& scope, const std::string& pair, std::size_t index, std::size_t begin) {
    const auto equals = pair.find('=');
    if (equals != std::string::npos)
      scope.assigned.push_back({pair.substr(0, equals), pair.substr(equals + 1), index, begin + equals + 1});
    return equals != std::string::npos;
  }

  /// Applies a list as of srun --export=ALL,NAME=value,... Without ALL the program only gets the variables of the list.
  static void assign_list(Program& scope, const GivenOption& option, std::size_t begin) {
    scope.cleared = true;
    for (const std::string& part : split(option.value, ',')) {
      if (!assign(scope, part, option.value_index, begin))
        scope.kept.push_back(part);
      scope.cleared = scope.cleared && !is_listed(part, "ALL all");
      begin += part.size() + 1;
    }
  }

  /// Returns the word behind the hosts that stand in front of the command: one for each process, unless an option names
  /// a file of them.
  static std::size_t skip_hosts(ChainLink& link, std::size_t at, std::size_t end) {
    const std::string processes = link.launcher->get("hosts");
    std::vector<GivenOption>& given = link.options.given;
    const auto option = std::ranges::find(given, processes, &GivenOption::name);
    if (processes.empty() || option == given.end() || link.options.last(Means::hosts) != nullptr)
      return at;
    const auto count = parse_number<std::size_t>(option->value).value_or(0);
    given.push_back({.means = Means::hosts, .index = at, .value_index = at});
    return at + std::min(count, end - at);
  }

  void walk_tail(ChainLink& link, std::size_t at, std::size_t end, Program scope) {
    const Launcher& launcher = *link.launcher;
    const OptionsRead& read = link.options;
    const GivenOption* text = read.last(Means::command_text);
    if (text != nullptr &&
        !text->value.empty()) { // env -S: the text may hold options of env, and the words behind it follow
      const std::string words = text->value + " " +
                                shell_join({m_argv.begin() + static_cast<std::ptrdiff_t>(at),
                                            m_argv.begin() + static_cast<std::ptrdiff_t>(end)});
      return add_program(ProgramKind::shell, text->value_index, end, end, scope, false,
                         launcher.row.has("assignments") ? "env " + words : text->value);
    }
    at = skip_hosts(link, at, end);
    while (launcher.row.has("assignments") && at < end && assign(scope, m_argv[at], at, 0))
      ++at;
    at = std::min(at + (launcher.row.has("operands") ? 1 : 0), end);
    if (at >= end && launcher.row.has("input"))
      return add_program(ProgramKind::program, link.index, end, end, scope, false);
    if (at < end)
      link.command = at;
    const bool script = launcher.tail == Tail::script && at < end && read.last(Means::no_python) == nullptr;
    if (launcher.tail == Tail::python)
      walk_python(link, at, end, scope);
    else if (launcher.tail == Tail::shell || launcher.tail == Tail::batch)
      walk_shell(link, at, end, scope);
    else if (script && read.last(Means::module) != nullptr)
      walk_module(at, at + 1, end, scope, m_argv[at]);
    else if (script)
      walk_python_file(at, end, scope);
    else
      walk_command(at, end, scope);
  }

  void walk_python(const ChainLink& link, std::size_t at, std::size_t end, const Program& scope) {
    const OptionsRead& read = link.options;
    if (!read.ended_by_option && at < end)
      return walk_python_file(at, end, scope);
    if (!read.ended_by_option) // python reads stdin
      return add_program(ProgramKind::file, link.index, end, end, scope, true, "-");
    const GivenOption last = read.given.back();
    if (last.means == Means::run_module)
      return walk_module(last.value_index, at, end, scope, last.value);
    add_program(ProgramKind::text, last.value_index, at, end, scope, true, last.value);
  }

  void walk_python_file(std::size_t at, std::size_t end, const Program& scope) {
    const Launcher* launcher = find_launcher(m_argv, at, end); // python /opt/env/bin/torchrun
    if (launcher != nullptr && launcher->row.has("modules") && launcher->verbs.empty())
      return walk_launcher(*launcher, std::string(launcher->name), at, at + 1, end, scope);
    add_program(ProgramKind::file, at, at + 1, end, scope, true);
  }

  void walk_module(std::size_t index, std::size_t begin, std::size_t end, const Program& scope,
                   const std::string& name) {
    if (const Launcher* launcher = find_module_launcher(name))
      if (has_verb(*launcher, m_argv, begin - 1, end))
        return walk_launcher(*launcher, name.starts_with("torch.distributed.") ? name : launcher->name, index,
                             index_behind_verb(*launcher, begin - 1), end, scope);
    if (const Row* known = find_opaque(name); // `python -m modal run`
        known != nullptr && !known->has("container") && runs_something(*known, begin, end))
      return end_unreached(index, "`" + name + "` " + known->get("does"), scope);
    add_program(ProgramKind::module, index, begin, end, scope, true, name);
  }

  void walk_shell(const ChainLink& link, std::size_t at, std::size_t end, const Program& scope) {
    // The shell reads its commands from stdin or a terminal.
    if (at >= end || link.options.last(Means::no_python) != nullptr)
      return add_program(ProgramKind::program, link.index, end, end, scope, false);
    // With -c the text is the first word that is no option.
    if (link.options.last(Means::command_text) != nullptr)
      return add_program(ProgramKind::shell, at, end, end, scope, false);
    if (runs_container(at + 1, end)) // the script's "$@" may start one
      return end_in_container(at);
    add_program(ProgramKind::file, at, at + 1, end, scope, false);
  }

  const Argv& m_argv;
  int m_depth;
  int m_unknown = 0; ///< number of programs without a row in front of the present words
  Walk m_out;
};

} // namespace

const Assignment* Program::assignment_of(std::string_view variable) const {
  const auto found = std::ranges::find(assigned.rbegin(), assigned.rend(), variable, &Assignment::name);
  return found == assigned.rend() ? nullptr : &*found;
}

bool Program::takes_away(std::string_view variable) const {
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const std::string& one) { return is_listed(variable, one); });
  };
  return (cleared && !is_in(kept)) || is_in(unset);
}

Mention starts_in_container(const std::string& subject, const std::string& by) {
  return {1, "SF404", subject,
          by + "it starts in a container, whose environment and paths are not this host's, so it is not guarded",
          "let the container run `sharefs run -- CMD...`"};
}

Walk walk(const Argv& argv, const std::string& directory, int depth) {
  return argv.empty() ? Walk() : Walker(argv, depth).run(directory);
}

} // namespace sharefs::cachefix

#include "cachefix/launchers/walk.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/shell/shell.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cachefix {
namespace {

// Their names as words of an unknown program's arguments say nothing: they are too common.
constexpr std::string_view k_common_words =
    "env time nice ds lmf sh conda docker uv script timeout tune composer fabric";
constexpr std::string_view k_hint_table = "nothing of this command was changed; with --strict this is an error";

/// `scope` is the program as far as the launchers in front of it have made it.
class Walker {
 public:
  Walker(const Argv& argv, Budget& budget) : m_argv(argv), m_budget(budget) {}

  Walk go(const std::string& directory) {
    Program scope;
    scope.directory = directory;
    command(0, m_argv.size(), std::move(scope));
    if (!m_out.understood)
      m_out.programs.clear();
    return std::move(m_out);
  }

 private:
  void give_up(std::string code, std::size_t index, std::string message, std::string hint = {}) {
    m_out.understood = false;
    if (const auto words = std::span(m_argv).subspan(std::min(index, m_argv.size()));
        code != "SF404" && starts_container(words))
      return not_looked_into(index);
    warn(std::move(code), index < m_argv.size() ? m_argv[index] : "command line", std::move(message),
         hint.empty() ? std::string(k_hint_table) : std::move(hint));
  }
  void warn(std::string code, const std::string& subject, std::string message, std::string hint) {
    m_out.problems.push_back(
        {Severity::warning, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""});
  }

  void add_program(ProgramKind kind, std::size_t index, std::size_t begin, std::size_t end, Program scope, bool python,
                   std::string name = {}) {
    // Inside of shell text: an expansion that is not known stands where the program's name should.
    if (name.empty())
      name = m_argv[index];
    if (kind != ProgramKind::shell && kind != ProgramKind::text && is_unknown(base_name(name)))
      return give_up("SF403", index, "the program stands in a variable that is not known");
    scope.kind = kind;
    scope.index = index;
    scope.name = std::move(name);
    scope.begin = std::min(begin, end);
    scope.tail = end;
    scope.end = find_word("--", scope.begin, end);
    scope.python = python;
    if (scope.end + 1 < end)
      warn_of_lost_dashes(scope);
    m_out.programs.push_back(std::move(scope));
  }

  /// The first of argv[begin, end) that is `word`, else `end`.
  [[nodiscard]] std::size_t find_word(std::string_view word, std::size_t begin, std::size_t end) const {
    while (begin < end && m_argv[begin] != word)
      ++begin;
    return begin;
  }

  /// The index of the first word behind argv[at] and the launcher's verb.
  [[nodiscard]] std::size_t behind_verb(const Launcher& launcher, std::size_t at, std::size_t end) const {
    return at + 1 + verb_length(launcher, m_argv, at, end).value_or(0);
  }

  /// argv[begin, end) is a program and its arguments.
  void command(std::size_t begin, std::size_t end, Program scope) {
    const Deeper deeper(m_budget);
    if (begin >= end || !m_out.understood || !deeper || !m_budget.take(&Budget::words, end - begin))
      return;
    const Launcher* launcher = find_launcher(m_argv, begin, end);
    if (launcher == nullptr)
      return program(begin, end, std::move(scope));
    const std::string name = base_name(m_argv[begin]);
    const bool exact = any_word(launcher->programs, ' ', [&](std::string_view known) { return known == name; });
    launched(*launcher, exact ? name : std::string(launcher->name), begin, behind_verb(*launcher, begin, end), end,
             std::move(scope));
  }

  /// A launcher by its name, and none by the word behind it, although it runs something: by another verb
  /// (`docker exec`), or with options in front of the verb (`uv --offline run`).
  [[nodiscard]] bool starts_in_another_way(const Launcher& launcher, std::size_t begin, std::size_t end) const {
    return std::ranges::any_of(std::span(m_argv).subspan(begin + 1, end - begin - 1), [&](const std::string& word) {
      return is_listed(word, launcher.verbs) || is_listed(word, launcher.other_verbs);
    });
  }

  void not_looked_through(std::size_t index, std::string_view name, std::string_view does) {
    give_up("SF402", index, "`" + to_utf8(std::string(name)) + "` " + std::string(does),
            "let it run `sharefs run -- CMD...`; nothing of this command was changed");
  }

  void not_looked_into(std::size_t index) {
    give_up("SF404", index, std::string(k_in_container), std::string(k_into_container));
  }

  /// Not `find . -name x`, `tmux ls` or `sudo nvidia-smi`.
  [[nodiscard]] bool runs_something(const OpaquePrograms& known, std::size_t begin, std::size_t end) const {
    const auto words = std::span(m_argv).subspan(begin, end - begin);
    if (known.prefix) {
      const auto first = std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
      return first != words.end() && !is_plain_tool(*first); // a lone `xargs` only prints
    }
    return known.by.empty() ||
           std::ranges::any_of(words, [&](const std::string& word) { return is_listed(word, known.by); });
  }

  void program(std::size_t begin, std::size_t end, Program scope) {
    const std::string name = base_name(m_argv[begin]);
    for (const OpaquePrograms& known : opaque_programs())
      if (is_listed(name, known.programs))
        return !runs_something(known, begin + 1, end)
                   ? add_program(ProgramKind::program, begin, begin + 1, end, std::move(scope),
                                 is_listed(name, python_programs()))
               : known.container ? not_looked_into(begin)
                                 : not_looked_through(begin, name, known.does);
    if (const auto blank = m_argv[begin].find(' ');
        blank != std::string::npos && (find_launcher_by_name(m_argv[begin].substr(0, blank)) != nullptr ||
                                       is_listed(base_name(m_argv[begin].substr(0, blank)), python_programs())))
      return give_up("SF403", begin, "it is a whole command in one word, which sharefs does not read",
                     "give its words one by one");
    if (assigns_variable(m_argv[begin]))
      return give_up("SF402", begin, "only a shell takes a variable's value in front of a command",
                     hint_for_assignment(m_argv[begin]));
    if (const Launcher* relative = find_launcher_by_name(m_argv[begin]);
        relative != nullptr && starts_in_another_way(*relative, begin, end))
      return give_up("SF402", begin,
                     "what `" + name + "` runs is only known where `" + std::string(relative->name) +
                         "` is what the command begins with");
    if (name.ends_with(".py") && m_argv[begin].find('/') != std::string::npos)
      return python_file(begin, end, std::move(scope));
    if (!is_plain_tool(name) && starts_container(std::span(m_argv).subspan(begin + 1, end - begin - 1)))
      return not_looked_into(begin);
    const bool script = name.ends_with(".py") || name.ends_with(".sh") || name.ends_with(".bash");
    for (std::size_t i = begin + 1; i < end && !script; ++i) {
      const std::string word = base_name(m_argv[i]);
      const bool runs = (find_launcher(m_argv, i, end) != nullptr && !is_listed(word, k_common_words)) ||
                        word.ends_with(".py") || word.ends_with(".sh");
      if (runs)
        return give_up("SF402", begin,
                       "`" + to_utf8(name) + "` seems to run `" + to_utf8(m_argv[i]) +
                           "`, in a way that sharefs does not know");
    }
    add_program(ProgramKind::program, begin, begin + 1, end, std::move(scope), is_listed(name, python_programs()));
  }

  /// The launcher's options start at `begin`; its own word is argv[index].
  void launched(const Launcher& launcher, std::string name, std::size_t index, std::size_t begin, std::size_t end,
                Program scope) {
    const Deeper deeper(m_budget);
    if (!deeper || !m_budget.take(&Budget::words, end - std::min(begin, end)))
      return;
    const std::size_t number = m_out.chain.size();
    m_out.chain.push_back({&launcher, std::move(name), index, {}, begin, begin, {}});
    scope.chain.push_back(number);
    if (launcher.tail == Tail::itself)
      return add_program(ProgramKind::program, index, begin, end, std::move(scope), true);
    if (launcher.tail == Tail::contexts)
      return contexts(number, begin, end, scope);
    if (launcher.separator)
      if (const std::size_t colon = find_word(":", begin, end); colon < end)
        return give_up("SF401", colon, "commands behind `:` have options of their own, which sharefs does not read");
    if (const auto at = options(number, begin, end, scope))
      tail(number, *at, end, std::move(scope));
  }

  /// Commands separated by `:`, each with options of its own.
  void contexts(std::size_t number, std::size_t begin, std::size_t end, const Program& scope) {
    while (begin < end && m_out.understood && !m_budget.is_spent()) {
      m_out.chain[number].contexts.push_back(begin);
      const std::size_t stop = find_word(":", begin, end);
      Program own = scope;
      if (const auto at = options(number, begin, stop, own))
        command(*at, stop, std::move(own));
      begin = stop + 1;
    }
  }

  /// Reads the options into the chain and their meaning into the scope; where the tail begins, or nullopt if nothing is
  /// run or the options are not understood.
  std::optional<std::size_t> options(std::size_t number, std::size_t begin, std::size_t end, Program& scope) {
    const Launcher& launcher = *m_out.chain[number].launcher;
    OptionsRead read = read_options(launcher, m_argv, begin, end);
    if (const GivenOption* container = read.last(Means::container)) { // whatever else is not understood
      not_looked_into(container->index);
      return std::nullopt;
    }
    if (!read.problem.empty()) {
      give_up("SF401", read.problem_index, read.problem);
      return std::nullopt;
    }
    for (const GivenOption& option : read.given)
      if (option.means && m_out.understood) // one reason is enough
        apply(launcher, option, scope);
    const bool nothing_runs = read.last(Means::information) != nullptr;
    auto& all = m_out.chain[number].options;
    const std::size_t at = read.end;
    read.given.insert(read.given.begin(), all.given.begin(), all.given.end());
    all = std::move(read);
    return nothing_runs || !m_out.understood ? std::nullopt : std::optional(at);
  }

  /// Options of the launcher among the script's words: up to a `--` it takes what it knows, and leaves the rest. False:
  /// nothing is run. They stay among the script's arguments, none of which has their names.
  bool options_behind(std::size_t number, std::size_t at, std::size_t end) {
    OptionsRead& options = m_out.chain[number].options;
    if (options.ended_by_dashes)
      return true;
    for (const std::size_t stop = find_word("--", at, end); at < stop; ++at) {
      OptionsRead read = read_options(*m_out.chain[number].launcher, m_argv, at, stop);
      at = std::max(at, read.end); // the word that is none, or none that is known
      std::ranges::move(read.given, std::back_inserter(options.given));
    }
    return options.last(Means::information) == nullptr;
  }

  void apply(const Launcher& launcher, const GivenOption& option, Program& scope) {
    const std::size_t begin = m_argv[option.value_index].size() - option.value.size();
    switch (*option.means) {
    case Means::directory:
      scope.directory = normalize_path(option.value, scope.directory);
      break;
    case Means::assign:
      assign(scope, option.value, option.value_index, begin);
      break;
    case Means::assign_pair:
      scope.assigned.push_back({option.value, option.second, option.value_index, 0});
      break;
    case Means::assign_list:
      return assign_list(scope, option, begin);
    case Means::unset:
      scope.unset.push_back(option.value);
      break;
    case Means::clear:
      scope.cleared = true;
      break;
    case Means::split_text:
      return give_up("SF403", option.index, "the words inside of `env -S` are not read");
    case Means::elsewhere:
      return give_up("SF402", option.index,
                     "with `" + option.name + "` " + std::string(launcher.name) +
                         " runs its command on another machine, with files of its own",
                     "let it run `sharefs run -- CMD...`; nothing of this command was changed");
    default:
      break;
    }
  }

  /// NAME=value, which begins at byte `begin` of argv[index]; false if it is none.
  static bool assign(Program& scope, const std::string& pair, std::size_t index, std::size_t begin) {
    const auto equals = pair.find('=');
    if (equals != std::string::npos)
      scope.assigned.push_back({pair.substr(0, equals), pair.substr(equals + 1), index, begin + equals + 1});
    return equals != std::string::npos;
  }

  /// srun --export=ALL,NAME=value,...: a list without ALL cuts the environment down to what it names.
  static void assign_list(Program& scope, const GivenOption& option, std::size_t begin) {
    scope.cleared = true;
    for (const std::string& part : split(option.value, ',')) {
      assign(scope, part, option.value_index, begin);
      scope.cleared = scope.cleared && part != "ALL";
      begin += part.size() + 1;
    }
  }

  void tail(std::size_t number, std::size_t at, std::size_t end, Program scope) {
    const ChainLink& link = m_out.chain[number];
    const Launcher& launcher = *link.launcher;
    if (launcher.assignments)
      at = assignments(number, at, end, scope);
    at = std::min(at + launcher.operands, end);
    if (launcher.dashes == Dashes::behind_operands && at < end && m_argv[at] == "--")
      ++at;
    m_out.chain[number].tail_begin = at;
    if (launcher.interspersed && !options_behind(number, at, end))
      return;
    switch (launcher.tail) {
    case Tail::command:
    case Tail::script:
      if (at >= end)
        return;
      if (link.options.last(Means::no_python) != nullptr)
        return command(at, end, std::move(scope));
      if (link.options.last(Means::module) != nullptr)
        return module(at, at + 1, end, std::move(scope));
      if (launcher.tail == Tail::script || (launcher.name == "uv run" && m_argv[at].ends_with(".py"))) // as uv does
        return python_file(at, end, std::move(scope));
      return command(at, end, std::move(scope));
    case Tail::python:
      return python(number, at, end, std::move(scope));
    case Tail::shell:
    case Tail::batch:
      return shell(number, at, end, std::move(scope));
    case Tail::contexts:
    case Tail::itself:
      return;
    }
  }

  /// What stands behind a `--` is no option of the program, but where its launcher takes the `--` away.
  void warn_of_lost_dashes(const Program& program) {
    for (const ChainLink& link : m_out.links(program)) {
      const Dashes dashes = link.launcher->dashes;
      std::string drops;
      if (dashes == Dashes::first_lost && !link.options.ended_by_dashes &&
          find_word("--", link.tail_begin, program.end) == program.end)
        drops = link.name + " drops the first `--` of its command, so what follows may be options; it was not changed";
      if (dashes == Dashes::behind_program_lost && program.end == link.tail_begin + 1)
        drops = "with some versions of Python, " + link.name +
                " drops a `--` that stands right behind the script, so what follows may be options after all; it was "
                "not changed";
      if (!drops.empty())
        warn("SF401", "--", std::move(drops), "leave the `--` out if they are options");
    }
  }

  std::size_t assignments(std::size_t number, std::size_t at, std::size_t end, Program& scope) {
    if (at < end && m_argv[at] == "-" && m_out.chain[number].launcher->name == "env") { // its old spelling of -i
      scope.cleared = true;
      m_out.chain[number].options.given.push_back({.name = "-", .means = Means::clear, .index = at, .value_index = at});
      ++at;
    }
    const bool any_name = m_out.chain[number].launcher->name == "env"; // the others take what a shell would
    while (at < end && (any_name || assigns_variable(m_argv[at])) && assign(scope, m_argv[at], at, 0))
      ++at;
    return at;
  }

  void python(std::size_t number, std::size_t at, std::size_t end, Program scope) {
    const OptionsRead& read = m_out.chain[number].options;
    if (read.ended_by_option) {
      const GivenOption last = read.given.back();
      if (last.means == Means::run_module)
        return module(last.value_index, at, end, std::move(scope), last.value);
      return add_program(ProgramKind::text, last.value_index, at, end, std::move(scope), true, last.value);
    }
    if (at < end)
      return python_file(at, end, std::move(scope));
    if (m_out.chain[number].launcher->name == "python") // from stdin
      add_program(ProgramKind::file, m_out.chain[number].index, end, end, std::move(scope), true, "-");
  }

  void python_file(std::size_t at, std::size_t end, Program scope) {
    // The console script of a launcher, given to python by its path: `python /opt/env/bin/torchrun ...`.
    const Launcher* launcher = find_launcher(m_argv, at, end);
    if (launcher != nullptr &&
        (launcher->tail == Tail::script || launcher->tail == Tail::itself || launcher->interspersed))
      return launched(*launcher, base_name(m_argv[at]), at, behind_verb(*launcher, at, end), end, std::move(scope));
    if (launcher == nullptr)
      launcher = find_module_launcher(m_argv[at]);
    if (launcher != nullptr && !launcher->modules.empty() && launcher->verbs.empty())
      return launched(*launcher, std::string(launcher->name), at, at + 1, end, std::move(scope));
    warn_of_command_behind_dashes(at + 1, end, m_argv[at]);
    add_program(ProgramKind::file, at, at + 1, end, std::move(scope), true);
  }

  /// A script that is a launcher by itself: `X.py --nodes 4 -- accelerate launch train.py ...`.
  void warn_of_command_behind_dashes(std::size_t begin, std::size_t end, const std::string& name) {
    const std::size_t at = find_word("--", begin, end) + 1;
    if (at >= end)
      return;
    if (starts_container(std::span(m_argv).subspan(at, end - at)))
      return not_looked_into(at);
    const std::string word = base_name(m_argv[at]);
    if (find_launcher(m_argv, at, end) == nullptr && !word.ends_with(".py") && !word.ends_with(".sh"))
      return;
    warn("SF402", m_argv[at],
         "`" + to_utf8(base_name(name)) +
             "` seems to run the command behind `--`, in a way that sharefs does not know; it was not changed",
         "let it run `sharefs run -- CMD...`");
  }

  void module(std::size_t index, std::size_t begin, std::size_t end, Program scope, std::string name = {}) {
    if (index >= end)
      return;
    if (name.empty())
      name = m_argv[index];
    if (const Launcher* launcher = find_module_launcher(name))
      if (const auto verb = verb_length(*launcher, m_argv, begin - 1, end))
        return launched(*launcher, name.starts_with("torch.distributed.") ? name : std::string(launcher->name), index,
                        begin + *verb, end, std::move(scope));
    if (is_listed(name, opaque_modules()))
      return not_looked_through(index, name, "starts programs in a way that sharefs does not know");
    warn_of_command_behind_dashes(begin, end, name);
    add_program(ProgramKind::module, index, begin, end, std::move(scope), true, std::move(name));
  }

  void shell(std::size_t number, std::size_t at, std::size_t end, Program scope) {
    const OptionsRead& options = m_out.chain[number].options;
    const GivenOption* text = options.last(Means::command_text);
    if (text != nullptr && text->has_value) // sbatch --wrap
      return add_program(ProgramKind::shell, text->value_index, end, end, std::move(scope), false, text->value);
    const bool interactive = std::ranges::any_of(options.given, [](const auto& one) { return one.name == "-i"; });
    if (at >= end && text == nullptr && !interactive)
      warn("SF403", m_out.chain[number].name,
           "it reads its commands from where sharefs does not look (stdin), so nothing of them was changed",
           "give it the script's name, or put `sharefs run --` in front of the commands");
    if (at >= end)
      return;
    if (text != nullptr) // bash -c: the string is the first word that is no option
      return add_program(ProgramKind::shell, at, end, end, std::move(scope), false);
    if (starts_container(std::span(m_argv).subspan(at + 1, end - at - 1))) // its "$@"
      return not_looked_into(at);
    add_program(ProgramKind::file, at, at + 1, end, std::move(scope), false);
  }

  const Argv& m_argv;
  Budget& m_budget;
  Walk m_out;
};

} // namespace

const Assignment* Program::assignment_of(std::string_view variable) const {
  const auto found = std::ranges::find(assigned.rbegin(), assigned.rend(), variable, &Assignment::name);
  return found == assigned.rend() ? nullptr : &*found;
}

bool Program::takes_away(std::string_view variable) const {
  return cleared || std::ranges::find(unset, variable) != unset.end();
}

bool Walk::has_one_program() const {
  return std::ranges::all_of(programs, [this](const Program& program) {
    return program.kind == programs.front().kind && program.name == programs.front().name;
  });
}

std::vector<std::reference_wrapper<const ChainLink>> Walk::links(const Program& program) const {
  std::vector<std::reference_wrapper<const ChainLink>> all;
  for (const std::size_t number : program.chain)
    all.emplace_back(chain[number]);
  return all;
}

Walk walk(const Argv& argv, const std::string& directory, Budget& budget) {
  return Walker(argv, budget).go(directory);
}

} // namespace sharefs::cachefix

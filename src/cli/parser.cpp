// Parses the command line with CLI11, from the rows of the commands. This file adds the hints, and splits the words at
// the first `--`. CLI11's exceptions end here.
#include "cli/parser.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/on_nodes.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

namespace sharefs::cli {

namespace {

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// Stands for the value of `--option=`, because CLI11 would take the next word for it. No argument of a program can
/// have this byte.
constexpr char k_empty_value = '\0';

void mark_empty_values(Argv& words) {
  for (auto& word : words)
    if (word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1)
      word += k_empty_value;
}

/// Returns the words as they were given: those of another program, and values of options.
Argv unmarked(Argv words) {
  for (auto& word : words)
    std::erase(word, k_empty_value);
  return words;
}

/// Returns the command of this name; nullptr if there is none. A family is no command.
const CommandSpec* find_command(std::string_view name) {
  const auto* row = find_row(name);
  return row != nullptr && row->run != nullptr ? row : nullptr;
}

std::string joined(const std::string& prefix, const std::string& word) {
  return prefix.empty() ? word : prefix + " " + word;
}

std::vector<std::string> next_words(const std::string& prefix) {
  std::vector<std::string> words;
  for (auto& one : words_below(prefix))
    words.push_back(std::move(one.name));
  return words;
}

std::string help_hint(const std::string& path) {
  return fmt::format("run `sharefs {}--help`", path.empty() ? "" : path + " ");
}

tl::unexpected<Error> wrong_usage(const std::string& message, const std::string& path) {
  return fail(ErrorCode::usage, message, help_hint(path));
}

/// What people write who know the program that a command stands for, and what it is called here: exportfs(8), mount(8),
/// umount(8), and conda's own commands.
constexpr auto k_habits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"conda activate", "conda's own `conda activate ENV` works once `sharefs conda link` has made the links"},
    {"conda create", "make it with conda itself, then `sharefs conda share PATH` puts it into the store"},
    {"conda env", "`sharefs conda list` shows the environments of the store"},
    {"conda install", "`sharefs conda update ENV -- conda install PACKAGE` changes an environment for all"},
    {"conda remove", "`sharefs conda update ENV -- conda remove PACKAGE` changes an environment for all"},
    {"conda run -n", "the environment is named without an option: `sharefs conda run ENV -- COMMAND`"},
    {"conda run -p", "the environment is named without an option: `sharefs conda run ENV -- COMMAND`"},
    {"export -a", "did you mean `--all`?"},
    {"export -ra", "did you mean `--all`?"},
    {"exportfs", "did you mean `export --all`?"},
    {"mount -a", "did you mean `--all`?"},
    {"mount -o", "options of a mount are written in sharefs.yaml: `mounts: {NAME: {options: [...]}}`"},
    {"mount -t", "what is mounted is written in sharefs.yaml, and named here; `sharefs init` writes one"},
    {"umount -a", "did you mean `--all`?"},
    {"umount -f", "did you mean `--force`?"},
    {"umount -l", "did you mean `--lazy`?"},
});

std::string habit_hint(const std::string& words) {
  const auto found = std::ranges::find(k_habits, words, &std::pair<std::string_view, std::string_view>::first);
  return found == k_habits.end() ? "" : std::string(found->second);
}

/// Returns "did you mean" for an unknown command, also if its first word was forgotten (`link`).
std::string command_hint(const std::string& path, const std::string& word) {
  auto known = next_words(path);
  if (auto habit = habit_hint(joined(path, word)); !habit.empty())
    return habit;
  if (path.empty() && (word == "help" || word == "version"))
    return fmt::format("write it in front of all else: `sharefs {}`", word);
  if (path.empty())
    known.insert(known.end(), {"help", "version"});
  if (auto near = did_you_mean_hint(word, known); !near.empty())
    return near;
  for (const auto& group : command_groups())
    for (const auto* row : group.commands)
      if (path.empty() && row->name.ends_with(" " + word))
        return fmt::format("did you mean `{}`?", row->name);
  return help_hint(path);
}

/// The commands as CLI11 parses them. A command gets its options and its own commands only when the parser reaches it,
/// because `sharefs run` stands in front of every launch and must not pay for the options of others.
class Program {
 public:
  Program() {
    m_root.set_help_flag(); // our own flag is used: it counts only if the rest of the command line is right
    m_root.allow_extras();  // remaining words are reported with our own hints
    m_root.require_subcommand(0, 1);
    define(m_root, "");
  }

  Result<Parsed> parse(Argv words, std::optional<Argv> rest, std::size_t width) {
    Parsed parsed;
    if (words == Argv{"options", "--help"}) { // spell_as_options() has made these words
      parsed.print = help_of_options(width);
      return parsed;
    }
    mark_empty_values(words);
    std::ranges::reverse(words); // CLI11 takes words from the back
    try {
      m_root.parse(words);
    } catch (const CLI::ParseError& error) {
      find_path();
      return wrong_usage(message_of(error), m_path);
    }
    find_path();
    parsed.command = find_command(m_path);
    TRY_ASSIGN(const auto foreign, assign_words(parsed.command, std::move(rest)));
    if (m_arguments.flag("version"))
      parsed.print = fmt::format("sharefs {}\n", SHAREFS_VERSION);
    else if (m_arguments.flag("help") || (m_path.empty() && !foreign && !m_arguments.value("on")))
      parsed.print = help_of(m_path, width);
    if (parsed.print)
      return parsed;
    if (parsed.command == nullptr)
      return fail(ErrorCode::usage, fmt::format("`sharefs{}` needs a command", m_path.empty() ? "" : " " + m_path),
                  fmt::format("one of {}", join(next_words(m_path), ", ")));
    TRY(check_positional(*parsed.command, foreign));
    parsed.arguments = std::move(m_arguments);
    return parsed;
  }

 private:
  void define(CLI::App& app, const std::string& path) {
    const auto* command = find_command(path);
    add_options(app, global_options());
    if (path.empty() || (command != nullptr && command->on_nodes))
      add_options(app, fleet_options());
    if (command != nullptr) {
      add_options(app, command->options);
      if (command->changes)
        add_options(app, change_options());
      app.prefix_command(command->takes_command);
      if (command->takes_command && command->positional.min > 0)
        app.add_option("words",
                       [this](const std::vector<std::string>& given) {
                         m_arguments.positional = given;
                         return true;
                       })
            ->expected(static_cast<int>(command->positional.min));
    }
    for (const auto& [title, word, summary] : words_below(path)) {
      auto* below = app.add_subcommand(word);
      below->preparse_callback([this, below, path = joined(path, word)](std::size_t) { define(*below, path); });
    }
  }

  /// Adds options that put what is given into m_arguments. They may stand before and behind the command, and the last
  /// one counts: CLI11 calls back for the outer commands first.
  void add_options(CLI::App& app, std::span<const OptionSpec> specs) {
    for (const auto& spec : specs) {
      const std::string names(spec.names);
      const auto key = names.substr(names.rfind("--") + 2);
      if (spec.value.empty()) {
        app.add_flag_callback(names, [this, key] { m_arguments.flags.insert(key); })->disable_flag_override();
        continue;
      }
      auto& values = m_arguments.values[key];
      if (!spec.fallback.empty())
        values = {std::string(spec.fallback)};
      auto* option = app.add_option(names, [&values](const std::vector<std::string>& given) {
        values = unmarked(given);
        return true;
      });
      option->expected(1)->type_name(std::string(spec.value));
      if (spec.repeat)
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      // CLI11 would accept the next option as the value, and an empty text from an unset shell variable.
      option->check([&app](const std::string& value) {
        const bool is_empty = value.empty() || value.front() == k_empty_value;
        return is_empty                                                               ? "is empty"
               : app.get_option_no_throw(value.substr(0, value.find('='))) == nullptr ? ""
                                                                                      : "is an option";
      });
    }
  }

  /// Lists the commands that were reached, from the outermost to the innermost.
  void find_path() {
    m_apps = {&m_root};
    for (auto below = m_root.get_subcommands(); !below.empty(); below = m_apps.back()->get_subcommands()) {
      m_apps.push_back(below.front());
      m_path = joined(m_path, below.front()->get_name());
    }
  }

  /// Rewrites CLI11's message, which begins with the name of the option and uses terms of CLI11.
  [[nodiscard]] std::string message_of(const CLI::ParseError& error) const {
    std::string text = error.what();
    const auto name = text.substr(0, text.find_first_of(": "));
    const auto key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    for (const auto* app : m_apps) // the option of this app that was given too often, or else one of the same name
      if (const auto* option = app->get_option_no_throw("--" + key); option != nullptr) {
        if (option->get_expected_max() == 0)
          text = fmt::format("option `--{}` takes no value", key);
        else if (option->count() > 1)
          return fmt::format("option `--{}` was given {} times", key, option->count());
        else
          text = fmt::format("option `--{}` needs a value: {}", key, option->get_type_name());
      }
    return text;
  }

  /// Assigns the words that are not options. They become positional arguments. For a command that runs another one, the
  /// words of that other command are returned: those behind `--` (`rest`), or, without `--`, those behind the arguments
  /// that the command itself needs.
  Result<std::optional<Argv>> assign_words(const CommandSpec* command, std::optional<Argv> rest) {
    const bool runs_one = command != nullptr && command->takes_command;
    for (const auto* app : m_apps) {
      const auto left_over = app->remaining();
      const bool is_innermost = app == m_apps.back();
      if (left_over.empty())
        continue;
      const auto word = std::ranges::find_if_not(left_over, is_option);
      if (word != left_over.end() && (!is_innermost || command == nullptr)) {
        // A command of the whole program that stands behind a family (`conda env`) is left to the outermost.
        const auto family = find_row(*word) != nullptr ? m_path.substr(0, m_path.find(' ')) : "";
        const auto outer = is_innermost ? m_path : family;
        return fail(ErrorCode::usage, fmt::format("unknown command `{}`", joined(outer, *word)),
                    command_hint(outer, *word));
      }
      const auto option = std::ranges::find_if(left_over, is_option);
      if (option != left_over.end() && (!runs_one || option == left_over.begin()))
        return unknown_option(option->substr(0, option->find('=')));
      if (!runs_one) {
        m_arguments.positional = left_over;
      } else {
        auto foreign = unmarked(left_over);
        if (rest) { // then `--` belongs to the command to run
          foreign.emplace_back("--");
          foreign.insert(foreign.end(), rest->begin(), rest->end());
        }
        rest = std::move(foreign);
      }
    }
    return rest;
  }

  [[nodiscard]] tl::unexpected<Error> unknown_option(const std::string& option) const {
    std::vector<std::string> names;
    for (const auto* known : m_apps.back()->get_options())
      for (auto& name : split(known->get_name(false, true), ','))
        names.push_back(std::move(name));
    constexpr std::size_t k_letter = 2; // a single letter is equally near to every other letter
    if (std::ranges::find(names, option) != names.end())
      return fail(ErrorCode::usage, fmt::format("`{}` stands in front of its command", option),
                  fmt::format("write it behind: `sharefs {} {}`", m_path, option));
    auto hint = habit_hint(joined(m_path, option));
    if (hint.empty() && option.size() > k_letter)
      hint = did_you_mean_hint(option, names);
    return fail(ErrorCode::usage, fmt::format("unknown option `{}`", option), hint.empty() ? help_hint(m_path) : hint);
  }

  Result<void> check_positional(const CommandSpec& command, const std::optional<Argv>& rest) {
    auto& words = m_arguments.positional;
    const auto& positional = command.positional;
    if (!command.takes_command && rest) // `--` only ended the options
      words.insert(words.end(), rest->begin(), rest->end());
    const bool any_number = !positional.name.empty() && positional.max == 0;
    if (!any_number && words.size() > positional.max)
      return wrong_usage(fmt::format("unexpected argument `{}`", words[positional.max]), m_path);
    if (words.size() < positional.min)
      return wrong_usage(fmt::format("{} is missing", positional.name), m_path);
    if (!command.takes_command)
      return {};
    if (!rest || rest->empty())
      return wrong_usage(rest ? "there is no command behind `--`" : "there is no command to run", m_path);
    m_arguments.rest = rest;
    return {};
  }

  CLI::App m_root;
  std::vector<const CLI::App*> m_apps{&m_root};
  std::string m_path; ///< "conda link"
  Arguments m_arguments;
};

/// Rewrites `help COMMAND`, `FAMILY help COMMAND` and `version` to the options of the same meaning.
void spell_as_options(Argv& words) {
  const auto* row = words.size() > 1 && words[1] == "help" ? find_row(words.front()) : nullptr;
  if (row != nullptr && row->run == nullptr) // a family
    std::swap(words[0], words[1]);
  if (!words.empty() && words.front() == "help") {
    words.front() = "--help";
    std::ranges::rotate(words, words.begin() + 1);
    if (words.front() == "help" || words.front() == "version") // `help help` and `help version` print the general help
      words.erase(words.begin());
  } else if (!words.empty() && words.front() == "version") {
    words.front() = "--version";
  }
}

Result<Parsed> with_flags(Parsed parsed) {
  auto& flags = parsed.flags;
  const auto& given = parsed.arguments;
  flags.config = given.value("config").value_or("");
  flags.root = given.value("root").value_or("/");
  flags.on = given.value("on").value_or("");
  flags.json = given.flag("json");
  flags.quiet = given.flag("quiet");
  flags.verbose = given.flag("verbose");
  flags.dry_run = given.flag("dry-run");
  flags.check = given.flag("check");
  flags.yes = given.flag("yes");
  TRY_ASSIGN(flags.wait, given.duration("wait"));
  if (given.value("on") && !parsed.command->on_nodes)
    return fail(ErrorCode::usage, fmt::format("`{}` works on this machine only", parsed.command->name),
                "`sharefs help options` says what `--on` is for");
  if (flags.dry_run && flags.check)
    return fail(
        ErrorCode::usage, "`--dry-run` and `--check` exclude each other",
        "`--dry-run` shows what would be done, `--check` says only by its exit code (3) that there is something");
  return parsed;
}

} // namespace

Result<std::chrono::milliseconds> Arguments::duration(std::string_view name) const {
  const auto text = value(name).value_or("");
  const auto parsed = parse_duration(text);
  if (!parsed)
    return not_understood(name, text, "a number of seconds, or with a unit: 500ms, 5s, 2min, 30d");
  return std::chrono::milliseconds(*parsed);
}

Result<std::chrono::milliseconds> Arguments::time_limit(std::string_view name, std::string_view example) const {
  auto time = duration(name);
  if (time && time->count() <= 0)
    return fail(ErrorCode::usage, fmt::format("--{} must be greater than zero", name),
                fmt::format("for example --{} {}", name, example));
  return time;
}

tl::unexpected<Error> not_understood(std::string_view option, std::string_view value, std::string hint) {
  return fail(ErrorCode::usage, fmt::format("option `--{}` does not understand `{}`", option, value), std::move(hint));
}

Result<Parsed> parse_command_line(const Argv& argv, std::size_t width) {
  const auto dashes = std::ranges::find(argv, "--");
  Argv words(argv.begin() + (argv.empty() ? 0 : 1), dashes);
  auto rest = dashes == argv.end() ? std::nullopt : std::optional(Argv(dashes + 1, argv.end()));
  spell_as_options(words);
  auto parsed = Program().parse(std::move(words), std::move(rest), width);
  return parsed && !parsed->print ? with_flags(std::move(*parsed)) : std::move(parsed);
}

} // namespace sharefs::cli

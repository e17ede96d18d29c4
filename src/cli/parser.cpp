// The only file that includes CLI11: it takes seconds to compile, and its exceptions end here. CLI11 reads the options
// of one command; which command that is has been found before.
#include "cli/parser.hpp"

#include "base/text.hpp"
#include "cli/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using Options = std::vector<const OptionSpec*>;

/// "-f,--force" -> "force": the key of an option in Arguments.
std::string key_of(const OptionSpec& option) {
  const auto last = split(option.names, ',').back();
  return last.substr(last.find_first_not_of('-'));
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// What the command understands; nullptr: no command.
Options options_of(const CommandSpec* command) {
  Options options;
  const auto add = [&options](const std::vector<OptionSpec>& specs) {
    for (const auto& spec : specs)
      options.push_back(&spec);
  };
  add(global_options());
  if (command != nullptr) {
    add(command->options);
    if (command->effect == Effect::changes)
      add(change_options());
  }
  return options;
}

const OptionSpec* find_option(const Options& options, std::string_view name) {
  const auto found = std::ranges::find_if(options, [name](const OptionSpec* option) {
    const auto names = split(option->names, ',');
    return std::ranges::find(names, name) != names.end();
  });
  return found == options.end() ? nullptr : *found;
}

/// The words that may follow `prefix` ("" or "conda").
std::vector<std::string> next_words(const std::string& prefix) {
  std::vector<std::string> words;
  if (prefix.empty())
    words = {"help", "version"};
  const auto depth = split_words(prefix).size();
  for (const auto* command : commands()) {
    const auto parts = split_words(command->name);
    const bool below = prefix.empty() || command->name.starts_with(prefix + " ");
    if (below && parts.size() > depth && std::ranges::find(words, parts[depth]) == words.end())
      words.push_back(parts[depth]);
  }
  return words;
}

std::string help_hint(const std::string& prefix) {
  return fmt::format("run `sharefs {}--help`", prefix.empty() ? "" : prefix + " ");
}

/// "did you mean" for a word where a command was expected, also when its first half was forgotten (`link`).
std::string command_hint(const std::string& prefix, const std::string& word) {
  if (auto near = did_you_mean_hint(word, next_words(prefix)); !near.empty())
    return near;
  for (const auto* command : commands())
    if (prefix.empty() && command->name.ends_with(" " + word))
      return fmt::format("did you mean `{}`?", command->name);
  return help_hint(prefix);
}

/// A command line on its way to what it means: first the command is found, then its options are known.
class Line {
 public:
  Line(Argv words, std::size_t width) : m_words(std::move(words)), m_width(width) {
    if (m_words.empty())
      return;
    const bool of_family = m_words.size() > 1 && m_words[1] == "help" && find_family(m_words.front()) != nullptr;
    if (m_words.front() == "help" || of_family) {
      m_words.erase(m_words.begin() + (of_family ? 1 : 0));
      m_words.emplace_back("--help");
    } else if (m_words.front() == "version") {
      m_words.front() = "--version";
    }
  }

  Result<Parsed> parse(std::optional<Argv> rest) {
    if (m_words == Argv{"options", "--help"}) {
      Parsed parsed;
      parsed.print = options_help(m_width);
      return parsed;
    }
    if (auto found = find_command(); !found)
      return fail(found.error());
    m_options = options_of(m_command);
    const bool runs_one = m_command != nullptr && m_command->takes_command;
    if (rest && runs_one && foreign_words() != m_words.cend()) { // `--` is a word of the command to run
      m_words.emplace_back("--");
      m_words.insert(m_words.end(), rest->begin(), rest->end());
      rest.reset();
    }
    if (auto taken = take_words(!rest); !taken)
      return fail(taken.error());
    Parsed parsed;
    if (m_arguments.flag("version")) {
      parsed.print = fmt::format("sharefs {}\n", SHAREFS_VERSION);
      return parsed;
    }
    if (m_arguments.flag("help") || (m_path.empty() && !rest)) {
      const auto* family = m_command == nullptr ? find_family(m_path) : nullptr;
      parsed.print = m_command != nullptr ? command_help(*m_command, m_width)
                     : family != nullptr  ? family_help(*family, m_width)
                                          : overview(m_width);
      return parsed;
    }
    if (m_command == nullptr)
      return fail(ErrorCode::usage,
                  fmt::format("`{}` needs a command", m_path.empty() ? "sharefs" : "sharefs " + m_path),
                  fmt::format("one of {}", join(next_words(m_path), ", ")));
    if (auto checked = check_values(); !checked)
      return fail(checked.error());
    if (auto placed = place_positional(std::move(rest)); !placed)
      return fail(placed.error());
    parsed.command = m_command;
    parsed.arguments = std::move(m_arguments);
    return with_flags(std::move(parsed));
  }

 private:
  /// The first words that are no options, as many as make the name of a command; they are removed.
  Result<void> find_command() {
    const auto global = options_of(nullptr);
    for (std::size_t i = 0; i < m_words.size(); ++i) {
      if (is_option(m_words[i])) {
        const auto* option = find_option(global, m_words[i]);
        i += option != nullptr && !option->value.empty() ? 1U : 0U;
        continue;
      }
      const auto words = next_words(m_path);
      const bool known = std::ranges::find(words, m_words[i]) != words.end();
      if (!known && m_command != nullptr)
        return {}; // an argument
      if (!known)
        return fail(ErrorCode::usage,
                    fmt::format("unknown command `{}{}`", m_path.empty() ? "" : m_path + " ", m_words[i]),
                    command_hint(m_path, m_words[i]));
      m_path += (m_path.empty() ? "" : " ") + m_words[i];
      const auto command = std::ranges::find(commands(), m_path, &CommandSpec::name);
      m_command = command == commands().end() ? nullptr : *command;
      m_words.erase(m_words.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    return {};
  }

  /// Where the command to run begins when no `--` says so: behind the words that this command needs itself.
  [[nodiscard]] Argv::const_iterator foreign_words() const {
    std::size_t own = m_command->positional.min;
    for (auto word = m_words.begin(); word != m_words.end(); ++word) {
      const auto* option = is_option(*word) ? find_option(m_options, *word) : nullptr;
      if (option != nullptr && !option->value.empty() && word + 1 != m_words.end())
        ++word;
      else if (!is_option(*word) && own-- == 0)
        return word;
    }
    return m_words.end();
  }

  /// Options into m_arguments, all other words into its positional ones. For a command that runs another one and was
  /// given no `--`, what follows its own words is that command's.
  Result<void> take_words(bool no_dashes) {
    auto words = m_words;
    Argv foreign;
    if (m_command != nullptr && m_command->takes_command && no_dashes) {
      const auto first = foreign_words();
      foreign.assign(first, m_words.cend());
      words.assign(m_words.cbegin(), first);
    }
    for (const auto& word : words) { // "--help=1"
      const auto* option = find_option(m_options, word.substr(0, word.find('=')));
      if (option != nullptr && option->value.empty() && word.find('=') != std::string::npos)
        return fail(ErrorCode::usage, fmt::format("option `--{}` takes no value", key_of(*option)), help_hint(m_path));
    }
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::vector<CLI::Option*> given;
    for (const auto* option : m_options) {
      const std::string names(option->names);
      given.push_back(option->value.empty()
                          ? app.add_flag(names)->disable_flag_override()
                          : app.add_option(names)->type_name(std::string(option->value))->expected(1));
      given.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    std::ranges::reverse(words); // CLI11 takes them from the back
    try {
      app.parse(words);
    } catch (const CLI::ArgumentMismatch& error) { // "--config: 1 required FILE missing"
      const std::string name = first_line(error.what()).substr(0, std::string(error.what()).find(':'));
      const auto* option = find_option(m_options, name);
      return option != nullptr && !option->value.empty()
                 ? needs_value(*option)
                 : fail(ErrorCode::usage, first_line(error.what()), help_hint(m_path));
    } catch (const CLI::ParseError& error) {
      return fail(ErrorCode::usage, first_line(error.what()), help_hint(m_path));
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i]->count() > 0 && m_options[i]->value.empty())
        m_arguments.flags.insert(key_of(*m_options[i]));
      else if (given[i]->count() > 0)
        m_arguments.values[key_of(*m_options[i])] = given[i]->results();
      for (const auto& value : given[i]->results()) // CLI11 takes whatever comes next
        if (!m_options[i]->value.empty() && find_option(m_options, value) != nullptr)
          return needs_value(*m_options[i]);
    }
    for (auto& word : app.remaining())
      if (is_option(word))
        return unknown(word.substr(0, word.find('=')));
      else
        m_arguments.positional.push_back(std::move(word));
    m_arguments.positional.insert(m_arguments.positional.end(), foreign.begin(), foreign.end());
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> needs_value(const OptionSpec& option) const {
    return fail(ErrorCode::usage, fmt::format("option `--{}` needs a value: {}", key_of(option), option.value),
                help_hint(m_path));
  }

  static std::string first_line(std::string text) {
    text = text.substr(0, text.find('\n'));
    while (text.ends_with('.'))
      text.pop_back();
    return text;
  }

  [[nodiscard]] tl::unexpected<Error> unknown(const std::string& option) const {
    std::vector<std::string> names;
    for (const auto* known : m_options)
      for (auto& name : split(known->names, ','))
        names.push_back(std::move(name));
    constexpr std::size_t k_letter = 2; // "-x" is as near to any other letter
    const auto near = option.size() > k_letter ? did_you_mean_hint(option, names) : "";
    return fail(ErrorCode::usage, fmt::format("unknown option `{}`", option), near.empty() ? help_hint(m_path) : near);
  }

  /// Not more often than it may be; then the defaults.
  Result<void> check_values() {
    for (const auto* option : m_options) {
      if (option->value.empty())
        continue;
      const auto key = key_of(*option);
      auto& given = m_arguments.values[key];
      if (given.size() > 1 && !option->repeat)
        return fail(ErrorCode::usage, fmt::format("option `--{}` was given {} times", key, given.size()),
                    help_hint(m_path));
      if (given.empty() && !option->fallback.empty())
        given.emplace_back(option->fallback);
    }
    return {};
  }

  Result<void> place_positional(std::optional<Argv> rest) {
    auto& words = m_arguments.positional;
    if (m_command->takes_command) {
      const auto own = m_command->positional.min;
      if (!rest && words.size() > own) {
        rest.emplace(words.begin() + static_cast<std::ptrdiff_t>(own), words.end());
        words.resize(own);
      }
      if (!rest)
        return words.size() < own
                   ? fail(ErrorCode::usage, fmt::format("{} is missing", m_command->positional.name), help_hint(m_path))
                   : fail(ErrorCode::usage, "there is no command to run", help_hint(m_path));
      if (rest->empty())
        return fail(ErrorCode::usage, "there is no command behind `--`", help_hint(m_path));
      m_arguments.rest = std::move(rest);
    } else if (rest) { // a plain end of options
      words.insert(words.end(), rest->begin(), rest->end());
    }
    const auto& positional = m_command->positional;
    const bool any_number = !positional.name.empty() && positional.max == 0;
    if (!any_number && words.size() > positional.max)
      return fail(ErrorCode::usage, fmt::format("unexpected argument `{}`", words[positional.max]), help_hint(m_path));
    if (words.size() < positional.min)
      return fail(ErrorCode::usage, fmt::format("{} is missing", positional.name), help_hint(m_path));
    return {};
  }

  static Result<Parsed> with_flags(Parsed parsed) {
    auto& flags = parsed.flags;
    const auto& given = parsed.arguments;
    flags.config = given.value("config").value_or("");
    flags.root = given.value("root").value_or("/");
    flags.json = given.flag("json");
    flags.quiet = given.flag("quiet");
    flags.verbose = given.flag("verbose");
    flags.dry_run = given.flag("dry-run");
    flags.check = given.flag("check");
    flags.yes = given.flag("yes");
    const auto wait = given.duration("wait");
    if (!wait)
      return fail(wait.error());
    flags.wait = *wait;
    if (flags.dry_run && flags.check)
      return fail(
          ErrorCode::usage, "`--dry-run` and `--check` exclude each other",
          "`--dry-run` shows what would be done, `--check` says only by its exit code (3) that there is something");
    return parsed;
  }

  Argv m_words; ///< without the program's name, the command's once it is found, and all from `--` on
  std::size_t m_width;
  std::string m_path;
  const CommandSpec* m_command = nullptr; ///< nullptr: none, or only the first half of one (`conda`)
  Options m_options;
  Arguments m_arguments;
};

} // namespace

Result<std::chrono::milliseconds> Arguments::duration(std::string_view name) const {
  const auto text = value(name).value_or("");
  const auto parsed = parse_duration(text);
  if (!parsed)
    return fail(ErrorCode::usage, fmt::format("option `--{}` does not understand `{}`", name, text),
                "a number of seconds, or with a unit: 500ms, 5s, 2min, 30d");
  return std::chrono::milliseconds(*parsed);
}

Result<Parsed> parse_command_line(const Argv& argv, std::size_t width) {
  const auto dashes = std::ranges::find(argv, "--");
  const auto first = argv.empty() ? argv.begin() : argv.begin() + 1;
  if (dashes == argv.end())
    return Line(Argv(first, argv.end()), width).parse(std::nullopt);
  return Line(Argv(std::min(first, dashes), dashes), width).parse(Argv(dashes + 1, argv.end()));
}

} // namespace sharefs::cli

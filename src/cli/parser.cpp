// The only file that includes CLI11: five seconds to compile, and its exceptions end here.
#include "cli/parser.hpp"

#include "base/text.hpp"
#include "cli/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Splits argv at the first `--`: what follows belongs to the wrapped command and CLI11 must never see it (its
/// prefix_command() and positional vectors change such arguments).
std::pair<Argv, std::optional<Argv>> split_at_dashes(const Argv& argv) {
  const auto dashes = std::ranges::find(argv, "--");
  if (dashes == argv.end())
    return {argv, std::nullopt};
  return {Argv(argv.begin(), dashes), Argv(dashes + 1, argv.end())};
}

/// The key of an option in Arguments: its last name without dashes ("-f,--force" -> "force").
std::string key_of(std::string_view names) {
  const auto last = split(names, ',').back();
  return last.substr(last.find_first_not_of('-'));
}

struct CommandNode {
  CLI::App* app = nullptr;           ///< nullptr: this command line cannot mean it
  const CommandSpec* spec = nullptr; ///< nullptr: only a prefix of others (`conda`)
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options;
};

class Parser {
 public:
  /// For `own`, the words before `--`, and no others. CLI11 learns of a command only if its first word is among them:
  /// to make its objects for all commands is most of the work of `sharefs run`.
  explicit Parser(const Argv& own) : m_app("sharefs") {
    m_app.fallthrough();
    m_app.allow_extras();
    m_app.set_help_flag();
    m_app.require_subcommand(0, 1);
    add_options(m_app, global_options(), m_global);
    for (const auto* spec : commands())
      add_command(*spec, std::ranges::find(own, split_words(spec->name).front()) != own.end());
  }

  Result<Parsed> parse(const Argv& own, std::optional<Argv> rest) {
    // CLI11 takes the arguments last first.
    std::vector<std::string> reversed(own.rbegin(), own.rend() - (own.empty() ? 0 : 1));
    try {
      m_app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return fail(ErrorCode::usage, first_line(error.what()), help_hint(chosen()));
    }
    return collect(std::move(rest));
  }

 private:
  static std::string first_line(std::string text) {
    text = text.substr(0, text.find('\n'));
    while (text.ends_with('.'))
      text.pop_back();
    return text;
  }

  static std::string help_hint(const CommandNode* node) {
    const std::string name = node != nullptr && node->spec != nullptr ? fmt::format(" {}", node->spec->name) : "";
    return fmt::format("run `sharefs{} --help`", name);
  }

  static void add_options(CLI::App& app, const std::vector<OptionSpec>& specs,
                          std::vector<std::pair<const OptionSpec*, CLI::Option*>>& into) {
    for (const auto& spec : specs) {
      CLI::Option* option = nullptr;
      if (spec.value.empty())
        option = app.add_flag(std::string(spec.names));
      else
        // One value each time; which of several counts is decided in collect().
        option =
            app.add_option(std::string(spec.names))->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      into.emplace_back(&spec, option);
    }
  }

  void add_command(const CommandSpec& spec, bool possible) {
    CLI::App* app = &m_app;
    std::string path;
    for (const auto& word : split_words(spec.name)) {
      path += path.empty() ? word : " " + word;
      auto found = std::ranges::find(m_nodes, path, &std::pair<std::string, CommandNode>::first);
      if (found == m_nodes.end()) {
        CLI::App* sub = possible ? app->add_subcommand(word) : nullptr;
        if (possible)
          sub->fallthrough()->require_subcommand(0, 1);
        m_nodes.emplace_back(path, CommandNode{sub, nullptr, {}});
        found = std::prev(m_nodes.end());
      }
      app = found->second.app;
    }
    auto& node = std::ranges::find(m_nodes, path, &std::pair<std::string, CommandNode>::first)->second;
    node.spec = &spec;
    if (!possible)
      return;
    add_options(*app, spec.options, node.options);
    if (spec.effect == Effect::changes)
      add_options(*app, change_options(), node.options);
  }

  /// The innermost command that was given.
  [[nodiscard]] const CommandNode* chosen() const {
    const CommandNode* found = nullptr;
    std::size_t depth = 0;
    for (const auto& [path, node] : m_nodes)
      if (node.app != nullptr && node.app->parsed() && path.size() > depth) {
        found = &node;
        depth = path.size();
      }
    return found;
  }

  [[nodiscard]] std::string path_of(const CommandNode* wanted) const {
    for (const auto& [path, node] : m_nodes)
      if (&node == wanted)
        return path;
    return {};
  }

  /// Names that may follow `prefix` ("" or "conda"): for "did you mean".
  [[nodiscard]] std::vector<std::string> next_words(const std::string& prefix) const {
    std::vector<std::string> words;
    for (const auto& [path, node] : m_nodes) {
      const bool below = prefix.empty() || path.starts_with(prefix + " ");
      const auto tail = prefix.empty() ? path : below ? path.substr(prefix.size() + 1) : "";
      if (below && tail.find(' ') == std::string::npos)
        words.push_back(tail);
    }
    return words;
  }

  static std::vector<std::string> option_names(const CommandNode* node) {
    std::vector<std::string> names;
    const auto take = [&names](const std::vector<OptionSpec>& specs) {
      for (const auto& spec : specs)
        for (auto& name : split(spec.names, ','))
          names.push_back(std::move(name));
    };
    take(global_options());
    if (node != nullptr && node->spec != nullptr) {
      take(node->spec->options);
      if (node->spec->effect == Effect::changes)
        take(change_options());
    }
    return names;
  }

  static Result<void> take_values(const std::vector<std::pair<const OptionSpec*, CLI::Option*>>& options,
                                  Arguments& into) {
    for (const auto& [spec, option] : options) {
      const auto key = key_of(spec->names);
      const bool is_flag = spec->value.empty();
      if (is_flag && option->count() > 0)
        into.flags.insert(key);
      if (is_flag)
        continue;
      const auto given = option->results();
      if (given.size() > 1 && !spec->repeat)
        return fail(ErrorCode::usage, fmt::format("option `{}` was given {} times", option->get_name(), given.size()));
      for (const auto& value : given)
        if (!spec->choices.empty() && std::ranges::find(spec->choices, value) == spec->choices.end()) {
          const std::vector<std::string> choices(spec->choices.begin(), spec->choices.end());
          const auto near = did_you_mean_hint(value, choices);
          return fail(ErrorCode::usage, fmt::format("option `{}` does not know `{}`", option->get_name(), value),
                      near.empty() ? fmt::format("one of {}", join(choices, ", ")) : near);
        }
      if (!given.empty())
        into.values[key] = given;
      else if (!spec->fallback.empty())
        into.values[key] = {std::string(spec->fallback)};
    }
    return {};
  }

  static bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

  /// What CLI11 did not recognise: positional arguments in their order, or mistakes. A mistyped command comes first,
  /// for then its options are unknown too.
  Result<std::vector<std::string>> leftovers(const CommandNode* node) const {
    auto words = m_app.remaining(true);
    const auto command = std::ranges::find_if_not(words, is_option);
    if ((node == nullptr || node->spec == nullptr) && command != words.end()) {
      const auto path = path_of(node);
      const auto prefix = path.empty() ? "" : path + " ";
      const auto near = did_you_mean_hint(*command, next_words(path));
      return fail(ErrorCode::usage, fmt::format("unknown command `{}{}`", prefix, *command),
                  near.empty() ? fmt::format("run `sharefs {}--help`", prefix) : near);
    }
    const auto option = std::ranges::find_if(words, is_option);
    if (option != words.end()) {
      const auto name = option->substr(0, option->find('='));
      const auto near = did_you_mean_hint(name, option_names(node));
      return fail(ErrorCode::usage, fmt::format("unknown option `{}`", name), near.empty() ? help_hint(node) : near);
    }
    return words;
  }

  Result<Parsed> collect(std::optional<Argv> rest) {
    Parsed parsed;
    Arguments global;
    if (auto taken = take_values(m_global, global); !taken)
      return fail(taken.error());
    const auto* node = chosen();
    const auto* spec = node != nullptr ? node->spec : nullptr;
    auto words = leftovers(node);
    if (!words)
      return fail(words.error());
    const bool bare = node == nullptr && words->empty() && !rest;

    if (global.flag("version")) {
      parsed.print = fmt::format("sharefs {}\n", SHAREFS_VERSION);
      return parsed;
    }
    const auto path = path_of(node);
    if (global.flag("help") || bare) {
      parsed.print = spec != nullptr ? command_help(*spec) : overview(path);
      return parsed;
    }
    if (spec == nullptr)
      return fail(ErrorCode::usage, fmt::format("`sharefs {}` needs a command", path),
                  fmt::format("one of {}", join(next_words(path), ", ")));

    parsed.command = spec;
    if (auto taken = take_values(node->options, parsed.arguments); !taken) {
      auto error = taken.error();
      if (error.hint.empty())
        error.hint = help_hint(node);
      return fail(error);
    }
    if (auto filled = take_positional(*spec, std::move(*words), std::move(rest), parsed.arguments); !filled)
      return fail(filled.error());
    return fill_flags(std::move(parsed), global);
  }

  static Result<void> take_positional(const CommandSpec& spec, std::vector<std::string> words, std::optional<Argv> rest,
                                      Arguments& into) {
    const auto hint = fmt::format("run `sharefs {} --help`", spec.name);
    if (spec.takes_command) {
      if (!rest)
        return fail(ErrorCode::usage, fmt::format("`sharefs {}` needs `--` before the command to run", spec.name),
                    words.empty() ? hint : fmt::format("run `sharefs {} -- {}`", spec.name, shell_join(words)));
      if (rest->empty())
        return fail(ErrorCode::usage, "there is no command behind `--`", hint);
      into.rest = std::move(rest);
    } else if (rest) { // a plain end of options
      words.insert(words.end(), rest->begin(), rest->end());
    }
    const auto& positional = spec.positional;
    const bool any_number = !positional.name.empty() && positional.max == 0;
    if (!any_number && words.size() > positional.max)
      return fail(ErrorCode::usage, fmt::format("unexpected argument `{}`", words[positional.max]), hint);
    if (words.size() < positional.min)
      return fail(ErrorCode::usage, fmt::format("{} is missing", positional.name), hint);
    into.positional = std::move(words);
    return {};
  }

  static Result<Parsed> fill_flags(Parsed parsed, const Arguments& global) {
    auto& flags = parsed.flags;
    const auto& own = parsed.arguments;
    flags.config = global.value("config").value_or("");
    flags.root = global.value("root").value_or("/");
    flags.json = global.flag("json");
    flags.quiet = global.flag("quiet");
    flags.verbose = global.flag("verbose");
    flags.dry_run = own.flag("dry-run");
    flags.check = own.flag("check");
    flags.yes = own.flag("yes");
    const auto wait = global.duration("wait");
    if (!wait)
      return fail(wait.error());
    flags.wait = *wait;
    if (flags.dry_run && flags.check)
      return fail(
          ErrorCode::usage, "`--dry-run` and `--check` exclude each other",
          "`--dry-run` shows what would be done, `--check` only tells by its exit code (3) that there is something");
    return parsed;
  }

  CLI::App m_app;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> m_global;
  std::vector<std::pair<std::string, CommandNode>> m_nodes;
};

} // namespace

Result<std::chrono::milliseconds> Arguments::duration(std::string_view name) const {
  const auto text = value(name).value_or("");
  const auto parsed = parse_duration(text);
  if (!parsed)
    return fail(ErrorCode::usage, fmt::format("option `--{}` does not understand `{}`", name, text),
                "a number of seconds, or with a unit: 500ms, 5s, 2min");
  return std::chrono::milliseconds(*parsed);
}

Result<Parsed> parse_command_line(const Argv& argv) {
  auto [own, rest] = split_at_dashes(argv);
  return Parser(own).parse(own, std::move(rest));
}

} // namespace sharefs::cli

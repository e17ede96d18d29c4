// The help. CLI11 puts it together; this file fits its rows to the terminal and adds the parts that CLI11 does not
// know.
#include "cli/help.hpp"

#include "base/text.hpp"
#include "cli/on_nodes.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Returns one line with the names of options that many commands have.
std::string line_of(std::string_view title, std::span<const OptionSpec> options, std::size_t width) {
  std::vector<std::string> names;
  for (const auto& option : options)
    names.push_back(split(option.names, ',').back());
  return fill(fmt::format("{}: {} (`sharefs help options`)", title, join(names, ", ")), width) + "\n";
}
std::string global_line(std::size_t width) {
  return line_of("Options of every command", global_options(), width);
}
std::string fleet_line(std::size_t width) {
  return line_of("On many machines", fleet_options(), width);
}

std::string usage(const CommandSpec& command) {
  std::string out = fmt::format("sharefs {}", command.name);
  if (!command.options.empty() || command.effect == Effect::changes)
    out += " [OPTIONS]";
  const auto& positional = command.positional;
  if (!positional.name.empty()) {
    const bool more = positional.max == 0 || positional.max > std::max<std::size_t>(positional.min, 1);
    // A name like "ENV [N M]" shows the number itself.
    const auto many = more && !positional.name.ends_with(']') ? "..." : "";
    out += positional.min == 0 ? fmt::format(" [{}{}]", positional.name, many)
                               : fmt::format(" {}{}", positional.name, many);
  }
  if (command.takes_command)
    out += " [--] COMMAND [ARGUMENT...]";
  return out;
}

/// Formats shell commands: a line that is too long has its comment above it, and continues behind a backslash.
std::string example_lines(std::string_view text, std::size_t width) {
  constexpr std::size_t k_indent = 2, k_further = 6, k_backslash = 2;
  std::string out;
  for (auto line : split_lines(text)) {
    const auto comment = line.find("  #");
    if (line.size() + k_indent > width && comment != std::string::npos && comment != 0) {
      out += fmt::format("  {}\n", trim(std::string_view(line).substr(comment)));
      line = std::string(trim(std::string_view(line).substr(0, comment)));
    }
    std::size_t indent = k_indent;
    for (; line.size() + indent > width; indent = k_further) {
      // Break in front of an option, so that it stays with its value.
      auto blank = line.rfind(" -", width - indent - k_backslash);
      if (blank == std::string::npos || blank == 0)
        blank = line.rfind(' ', width - indent - k_backslash);
      if (blank == std::string::npos || blank == 0)
        break;
      out += fmt::format("{}{} \\\n", std::string(indent, ' '), line.substr(0, blank));
      line.erase(0, blank + 1);
    }
    out += line.empty() ? "\n" : fmt::format("{}{}\n", std::string(indent, ' '), line);
  }
  return out;
}

/// The help of one command: its options and the commands below it.
class Help : public CLI::Formatter {
 public:
  Help(std::string path, std::size_t width) : m_path(std::move(path)), m_width(width) {
    const auto found = std::ranges::find(commands(), m_path, &CommandSpec::name);
    m_command = found == commands().end() ? nullptr : *found;
  }

  /// Gives all rows the same width of names; a longer name gets a line of its own.
  void fit(const CLI::App& app) {
    std::size_t longest = m_command == nullptr ? 0 : m_command->positional.name.size();
    for (const auto* option : shown(app))
      longest = std::max(longest, std::min(name_of(*option).size(), widest()));
    for (const auto* command : app.get_subcommands({}))
      longest = std::max(longest, command->get_name().size());
    column_width(std::min(longest, widest()));
  }

  /// Replaces CLI11's layout only so that the help of a command names the global options in its footer.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (m_path == k_options_page)
      return make_group(shown_group(), false, shown(*app)).substr(1); // without the empty line above the title
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           make_subcommands(app, mode) + (shown(*app).empty() ? "" : make_group(shown_group(), false, shown(*app))) +
           "\n" + make_footer(app);
  }

  std::string make_description(const CLI::App* app) const override {
    return fill(m_path.empty() ? k_program : app->get_description(), m_width) + "\n\n";
  }

  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    constexpr std::size_t k_behind_usage = 7;
    const auto* family = m_command == nullptr ? find_family(m_path) : nullptr;
    const auto line = m_command != nullptr
                          ? usage(*m_command)
                          : fmt::format("sharefs {}COMMAND [OPTIONS]", m_path.empty() ? "" : m_path + " ");
    auto out = fmt::format("Usage: {}\n", fill(line, m_width, k_behind_usage, k_behind_usage));
    const auto text = m_command != nullptr ? m_command->description : family != nullptr ? family->description : "";
    for (const auto& paragraph : split_lines(text))
      out += "\n" + fill(paragraph, m_width) + "\n";
    return out;
  }

  std::string make_positionals(const CLI::App* /*app*/) const override {
    if (m_command == nullptr || m_command->positional.name.empty())
      return "";
    return "\nArguments:\n" + row(std::string(m_command->positional.name), std::string(m_command->positional.help));
  }

  std::string make_option(const CLI::Option* option, bool /*is_positional*/) const override {
    const auto fallback = option->get_default_str();
    return row(name_of(*option),
               option->get_description() + (fallback.empty() ? "" : fmt::format(" [default: {}]", fallback)));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return row(command->get_name(), command->get_description());
  }

  std::string make_footer(const CLI::App* /*app*/) const override {
    if (m_command == nullptr && !m_path.empty())
      return fmt::format("Run `sharefs {} COMMAND --help` for one of them.\n", m_path);
    if (m_command == nullptr)
      return global_line(m_width) + fill(k_exit_codes, m_width) + "\n";
    return global_line(m_width) + (m_command->on_nodes ? fleet_line(m_width) : "") + "\nExample:\n" +
           example_lines(m_command->example, m_width);
  }

 private:
  static constexpr const char* k_program =
      "sharefs " SHAREFS_VERSION ": shared storage for small GPU clusters, from one file";
  static constexpr const char* k_exit_codes =
      "Exit codes: 0 ok, 1 failed, 2 usage, 3 changes pending (--check), 4 partly done, 130 interrupted. "
      "`sharefs help COMMAND` says more about one.";

  [[nodiscard]] const char* shown_group() const { return m_path == k_options_page ? k_global_group : k_own_group; }
  [[nodiscard]] std::vector<const CLI::Option*> shown(const CLI::App& app) const {
    return app.get_options([this](const CLI::Option* one) { return one->get_group() == shown_group(); });
  }
  static std::string name_of(const CLI::Option& option) {
    const auto names = join(split(option.get_name(false, true), ','), ", ");
    return option.get_type_name().empty() ? names : names + " " + option.get_type_name();
  }
  [[nodiscard]] std::size_t widest() const { return std::min<std::size_t>(30, m_width / 3); }

  /// Returns a row of two columns: a name and its meaning.
  [[nodiscard]] std::string row(const std::string& name, const std::string& meaning) const {
    constexpr std::size_t k_margins = 4;
    const auto width = get_column_width();
    const auto indent = width + k_margins;
    const auto text = fill(meaning, m_width, indent, indent);
    if (name.size() > width)
      return fmt::format("  {}\n{}{}\n", name, std::string(indent, ' '), text);
    return fmt::format("  {:<{}}  {}\n", name, width, text);
  }

  std::string m_path;
  std::size_t m_width;
  const CommandSpec* m_command;
};

} // namespace

std::size_t text_width(int columns) {
  return static_cast<std::size_t>(std::clamp(columns, 40, 100));
}

std::string fill(std::string_view text, std::size_t width, std::size_t indent, std::size_t first_column) {
  std::string out;
  std::size_t column = first_column;
  for (const auto& word : split_words(text)) {
    const bool at_start = column == indent || (out.empty() && column == first_column);
    if (!at_start && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!at_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::span<const OptionSpec> global_options() {
  static constexpr auto k_options = std::to_array<OptionSpec>({
      {.names = "--config",
       .value = "FILE",
       .help = "read this sharefs.yaml instead of $SHAREFS_CONFIG or /etc/sharefs/sharefs.yaml"},
      {.names = "--root",
       .value = "DIR",
       .help = "work on the system installed below DIR; live parts (mounts, services) are refused"},
      {.names = "--json", .help = "print one JSON document on standard output"},
      {.names = "--wait",
       .value = "TIME",
       .help = "how long to wait for another sharefs on this host, or at work on the same environment",
       .fallback = "10s"},
      {.names = "-q,--quiet", .help = "only warnings and errors"},
      {.names = "-v,--verbose", .help = "log what is run"},
      {.names = "-h,--help", .help = "show this help"},
      {.names = "-V,--version", .help = "show the version"},
  });
  return k_options;
}

const std::vector<OptionSpec>& change_options() {
  static const std::vector<OptionSpec> k_options{
      {.names = "-n,--dry-run", .help = "show what would be done and change nothing"},
      {.names = "--check", .help = "change nothing; exit with 3 if there is something to do"},
      {.names = "-y,--yes", .help = "do not ask"},
  };
  return k_options;
}

std::string help_of(const CLI::App& app, const std::string& path, std::size_t width) {
  Help help(path, width);
  help.fit(app);
  return help.make_help(&app, "", CLI::AppFormatMode::Normal);
}

void add_options(CLI::App& app, std::span<const OptionSpec> specs, const std::string& group) {
  for (const auto& spec : specs) {
    const std::string names(spec.names), help(spec.help);
    auto* option =
        spec.value.empty() ? app.add_flag(names)->disable_flag_override() : app.add_option(names)->expected(1);
    option->description(help)
        ->group(group)
        ->type_name(std::string(spec.value))
        ->default_str(std::string(spec.fallback));
    if (spec.repeat)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    // CLI11 would accept the next option as the value, and an empty text from an unset shell variable.
    if (!spec.value.empty())
      option->check([&app](const std::string& value) {
        return value.empty() ? "is empty" : app.get_option_no_throw(value) == nullptr ? "" : "is an option";
      });
  }
}

} // namespace sharefs::cli

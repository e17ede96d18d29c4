#include "cli/help.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// Two columns: names and what they mean.
std::string columns(const Rows& rows, std::size_t text_columns) {
  const auto widest = std::min<std::size_t>(30, text_columns / 3);
  std::size_t width = 0;
  for (const auto& [left, right] : rows)
    if (left.size() <= widest)
      width = std::max(width, left.size());
  std::string out;
  for (const auto& [left, right] : rows) {
    const auto indent = width + 4;
    if (left.size() > width)
      out += fmt::format("  {}\n{}{}\n", left, std::string(indent, ' '), fill(right, text_columns, indent, indent));
    else
      out += fmt::format("  {:<{}}  {}\n", left, width, fill(right, text_columns, indent, indent));
  }
  return out;
}

std::string option_rows(const std::vector<OptionSpec>& options, std::size_t width) {
  Rows rows;
  for (const auto& option : options) {
    auto names = join(split(option.names, ','), ", ");
    if (!option.value.empty())
      names += fmt::format(" {}", option.value);
    std::string text(option.help);
    if (!option.fallback.empty())
      text += fmt::format(" [default: {}]", option.fallback);
    rows.emplace_back(std::move(names), std::move(text));
  }
  return columns(rows, width);
}

Rows rows_of(const std::vector<const CommandSpec*>& commands) {
  Rows rows;
  for (const auto* command : commands)
    rows.emplace_back(std::string(command->name), std::string(command->summary));
  return rows;
}

/// The names of the options of every command, in one line.
std::string global_line(std::size_t width) {
  std::vector<std::string> names;
  for (const auto& option : global_options())
    names.push_back(split(option.names, ',').back());
  return fill(fmt::format("Options of every command: {} (`sharefs help options`)", join(names, ", ")), width) + "\n";
}

std::string usage(const CommandSpec& command) {
  std::string out = fmt::format("sharefs {}", command.name);
  if (!command.options.empty() || command.effect == Effect::changes)
    out += " [OPTIONS]";
  const auto& positional = command.positional;
  if (!positional.name.empty()) {
    const bool more = positional.max == 0 || positional.max > std::max<std::size_t>(positional.min, 1);
    const auto many = more && !positional.name.ends_with(']') ? "..." : ""; // "ENV [N M]" says how many
    out += positional.min == 0 ? fmt::format(" [{}{}]", positional.name, many)
                               : fmt::format(" {}{}", positional.name, many);
  }
  if (command.takes_command)
    out += " [--] COMMAND [ARGUMENT...]";
  return out;
}

/// Lines of a shell: one that is too long has its comment above it, and goes on behind a backslash.
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
      auto blank = line.rfind(" -", width - indent - k_backslash); // an option stays with its value
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

const std::vector<OptionSpec>& global_options() {
  static const std::vector<OptionSpec> k_options{
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
  };
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

std::string overview(std::size_t width) {
  auto out = fill("sharefs " SHAREFS_VERSION ": shared storage for small GPU clusters, from one file", width) +
             "\n\nUsage: sharefs COMMAND [OPTIONS]\n";
  std::vector<Rows> groups;
  std::size_t longest = 0; // one width of names for all groups
  for (const auto& group : command_groups()) {
    auto& rows = groups.emplace_back(rows_of(group.commands));
    for (const auto& family : group.families)
      rows.emplace_back(fmt::format("{} ...", family.name), std::string(family.summary));
    for (const auto& [name, summary] : rows)
      longest = std::max(longest, name.size());
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (auto& [name, summary] : groups[i])
      name.resize(longest, ' ');
    out += fmt::format("\n{}:\n{}", command_groups()[i].title, columns(groups[i], width));
  }
  return out + "\n" + global_line(width) +
         fill("Exit codes: 0 ok, 1 failed, 2 usage, 3 changes pending (--check), 4 partly done, 130 interrupted. "
              "`sharefs help COMMAND` says more about one.",
              width) +
         "\n";
}

std::string family_help(const CommandFamily& family, std::size_t width) {
  const auto prefix = std::string(family.name) + " ";
  Rows rows;
  for (const auto* command : family.commands)
    rows.emplace_back(std::string(command->name.substr(prefix.size())), std::string(command->summary));
  return fmt::format("{}\n\nUsage: sharefs {} COMMAND [OPTIONS]\n\n{}\n\nCommands:\n{}\n"
                     "Run `sharefs {} COMMAND --help` for one of them.\n",
                     fill(family.summary, width), family.name, fill(family.description, width), columns(rows, width),
                     family.name);
}

std::string options_help(std::size_t width) {
  return fmt::format("Options of every command:\n{}\nOptions of the commands that change something:\n{}",
                     option_rows(global_options(), width), option_rows(change_options(), width));
}

std::string command_help(const CommandSpec& command, std::size_t width) {
  constexpr std::size_t k_behind_usage = 7;
  std::string out = fmt::format("{}\n\nUsage: {}\n", fill(command.summary, width),
                                fill(usage(command), width, k_behind_usage, k_behind_usage));
  if (!command.description.empty())
    for (const auto& paragraph : split_lines(command.description))
      out += "\n" + fill(paragraph, width) + "\n";
  const auto& positional = command.positional;
  if (!positional.name.empty())
    out +=
        fmt::format("\nArguments:\n{}", columns({{std::string(positional.name), std::string(positional.help)}}, width));
  auto options = command.options;
  if (command.effect == Effect::changes)
    options.insert(options.end(), change_options().begin(), change_options().end());
  if (!options.empty())
    out += fmt::format("\nOptions:\n{}", option_rows(options, width));
  out += "\n" + global_line(width);
  if (!command.example.empty())
    out += fmt::format("\nExample:\n{}", example_lines(command.example, width));
  const auto subcommands = std::string(command.name) + " ";
  Rows rows;
  for (const auto* other : commands())
    if (other->name.starts_with(subcommands))
      rows.emplace_back(std::string(other->name), std::string(other->summary));
  if (!rows.empty())
    out += fmt::format("\nCommands below it:\n{}", columns(rows, width));
  return out;
}

} // namespace sharefs::cli

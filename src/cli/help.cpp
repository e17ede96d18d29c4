// The help, made from the rows of the commands and fitted to the terminal.
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/on_nodes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace sharefs::cli {

namespace {

/// Returns one line with the names of options that many commands have.
std::string line_of(std::string_view title, std::span<const OptionSpec> options, std::size_t width) {
  std::vector<std::string> names;
  for (const auto& option : options)
    names.push_back(split(option.names, ',').back());
  return fill(fmt::format("{}: {} (`sharefs help options`)", title, join(names, ", ")), width) + "\n";
}

std::string usage(const CommandSpec& command) {
  std::string out = fmt::format("sharefs {}", command.name);
  if (!command.options.empty() || command.changes)
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

void add_options(std::vector<HelpRow>& rows, const std::string& title, std::span<const OptionSpec> options) {
  for (const auto& option : options) {
    const auto names = join(split(option.names, ','), ", ");
    const auto fallback = option.fallback.empty() ? "" : fmt::format(" [default: {}]", option.fallback);
    rows.push_back({title, option.value.empty() ? names : fmt::format("{} {}", names, option.value),
                    fmt::format("{}{}", option.help, fallback)});
  }
}

/// Gives all names the same width; a longer one gets a line of its own.
std::string text_of(const std::vector<HelpRow>& rows, std::size_t width) {
  constexpr std::size_t k_margins = 4, k_widest = 30;
  std::size_t names = 0;
  for (const auto& row : rows)
    names = std::max(names, std::min({row.name.size(), k_widest, width / 3}));
  const auto indent = names + k_margins;
  std::string out;
  std::string title;
  for (const auto& row : rows) {
    if (row.title != std::exchange(title, row.title))
      out += fmt::format("\n{}:\n", row.title);
    const auto meaning = fill(row.meaning, width, indent);
    out += row.name.size() > names ? fmt::format("  {}\n{}{}\n", row.name, std::string(indent, ' '), meaning)
                                   : fmt::format("  {:<{}}  {}\n", row.name, names, meaning);
  }
  return out;
}

constexpr const char* k_program = "sharefs " SHAREFS_VERSION ": shared storage for small GPU clusters, from one file";
constexpr const char* k_exit_codes =
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 changes pending (--check), 4 partly done, 130 interrupted. "
    "`sharefs help COMMAND` says more about one.";
constexpr const char* k_own_options = "Options";
constexpr const char* k_global_options = "Options of every command";

} // namespace

std::size_t text_width(int columns) {
  return static_cast<std::size_t>(std::clamp(columns, 40, 100));
}

std::string fill(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (const auto& word : split_words(text)) {
    const bool at_start = column == indent;
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

std::string help_of(const std::string& path, std::size_t width) {
  const auto* row = find_row(path);
  const bool is_command = row != nullptr && row->run != nullptr;
  const auto below = words_below(path);
  std::vector<HelpRow> rows;
  if (is_command && !row->positional.name.empty())
    rows.push_back({"Arguments", std::string(row->positional.name), std::string(row->positional.help)});
  rows.insert(rows.end(), below.begin(), below.end());
  if (is_command)
    add_options(rows, k_own_options, row->options);
  if (is_command && row->changes)
    add_options(rows, k_own_options, change_options());

  const auto subject = path.empty() ? k_program : row != nullptr ? std::string(row->summary) : below.front().meaning;
  const auto line =
      is_command ? usage(*row) : fmt::format("sharefs {}COMMAND [OPTIONS]", path.empty() ? "" : path + " ");
  constexpr std::size_t k_behind_usage = 7;
  auto out = fmt::format("{}\n\nUsage: {}\n", fill(subject, width), fill(line, width, k_behind_usage));
  for (const auto& paragraph : split_lines(row == nullptr ? "" : row->description))
    out += "\n" + fill(paragraph, width) + "\n";
  out += text_of(rows, width) + "\n";
  if (!is_command && !path.empty())
    return out + fmt::format("Run `sharefs {} COMMAND --help` for one of them.\n", path);
  out += line_of(k_global_options, global_options(), width);
  if (!is_command)
    return out + fill(k_exit_codes, width) + "\n";
  if (row->on_nodes)
    out += line_of("On many machines", fleet_options(), width);
  return out + "\nExample:\n" + example_lines(row->example, width);
}

std::string help_of_options(std::size_t width) {
  std::vector<HelpRow> rows;
  add_options(rows, k_global_options, global_options());
  add_options(rows, k_global_options, fleet_options());
  return text_of(rows, width).substr(1); // without the empty line above the title
}

} // namespace sharefs::cli

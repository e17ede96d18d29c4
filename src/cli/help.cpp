#include "cli/help.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_width = 92;

/// Two columns: names and what they mean.
std::string columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  constexpr std::size_t k_widest = 30;
  std::size_t width = 0;
  for (const auto& [left, right] : rows)
    if (left.size() <= k_widest)
      width = std::max(width, left.size());
  std::string out;
  for (const auto& [left, right] : rows) {
    const auto indent = width + 4;
    if (left.size() > width)
      out += fmt::format("  {}\n{}{}\n", left, std::string(indent, ' '), fill(right, indent, indent));
    else
      out += fmt::format("  {:<{}}  {}\n", left, width, fill(right, indent, indent));
  }
  return out;
}

std::string option_rows(const std::vector<OptionSpec>& options) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& option : options) {
    auto names = join(split(option.names, ','), ", ");
    if (!option.value.empty())
      names += fmt::format(" {}", option.value);
    std::string text(option.help);
    if (!option.fallback.empty())
      text += fmt::format(" [default: {}]", option.fallback);
    rows.emplace_back(std::move(names), std::move(text));
  }
  return columns(rows);
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
    out += positional.min == 0 ? " -- COMMAND [ARGUMENT...]" : " [--] COMMAND [ARGUMENT...]";
  return out;
}

std::string indented(std::string_view text) {
  std::string out;
  for (const auto& line : split_lines(text))
    out += line.empty() ? "\n" : fmt::format("  {}\n", line);
  return out;
}

} // namespace

std::string fill(std::string_view text, std::size_t indent, std::size_t first_column) {
  std::string out;
  std::size_t column = first_column;
  for (const auto& word : split_words(text)) {
    const bool at_start = column == indent || (out.empty() && column == first_column);
    if (!at_start && column + 1 + word.size() > k_width) {
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

std::string overview(const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto* command : commands())
    if (prefix.empty() || command->name.starts_with(prefix + " "))
      rows.emplace_back(std::string(command->name), std::string(command->summary));
  if (!prefix.empty())
    return fmt::format("Usage: sharefs {} COMMAND\n\nCommands:\n{}\nRun `sharefs {} COMMAND --help` for one of them.\n",
                       prefix, columns(rows), prefix);
  return fmt::format("sharefs {}: shared storage for small GPU clusters, from one file\n\n"
                     "Usage: sharefs COMMAND [OPTIONS]\n\nCommands:\n{}\nOptions of every command:\n{}\n"
                     "Example:\n"
                     "  sharefs init                 # write /etc/sharefs/sharefs.yaml with what is found here\n"
                     "  sharefs export --all         # on the server\n"
                     "  sharefs mount --all          # on the clients\n"
                     "  sharefs run -- torchrun train.py --cache_dir /data/share/cache\n\n"
                     "Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 changes pending (--check),\n"
                     "4 partly done, 130 interrupted. `run` returns the code of its command.\n"
                     "Run `sharefs help COMMAND` for one command.\n",
                     SHAREFS_VERSION, columns(rows), option_rows(global_options()));
}

std::string command_help(const CommandSpec& command) {
  std::string out = fmt::format("{}\n\nUsage: {}\n", command.summary, usage(command));
  if (!command.description.empty())
    for (const auto& paragraph : split_lines(command.description))
      out += "\n" + fill(paragraph, 0, 0) + "\n";
  const auto& positional = command.positional;
  if (!positional.name.empty())
    out += fmt::format("\nArguments:\n{}", columns({{std::string(positional.name), std::string(positional.help)}}));
  auto options = command.options;
  if (command.effect == Effect::changes)
    options.insert(options.end(), change_options().begin(), change_options().end());
  if (!options.empty())
    out += fmt::format("\nOptions:\n{}", option_rows(options));
  out += fmt::format("\nOptions of every command:\n{}", option_rows(global_options()));
  if (!command.example.empty())
    out += fmt::format("\nExample:\n{}", indented(command.example));
  const auto subcommands = std::string(command.name) + " ";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto* other : commands())
    if (other->name.starts_with(subcommands))
      rows.emplace_back(std::string(other->name), std::string(other->summary));
  if (!rows.empty())
    out += fmt::format("\nCommands below it:\n{}", columns(rows));
  return out;
}

} // namespace sharefs::cli

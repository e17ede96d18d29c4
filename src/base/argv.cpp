#include "base/argv.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace sharefs {

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("@%_-+=:,./").find(c) != std::string_view::npos;
}

/// bash(1) ANSI-C quoting; every byte that could disturb a terminal is written as an escape.
std::string ansi_quote(std::string_view word) {
  std::string out = "$'";
  const bool keep_high_bytes = is_utf8(word);
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\'' || c == '\\')
      (out += '\\') += c;
    else if (is_control(c) || (byte >= 0x80 && !keep_high_bytes))
      out += fmt::format("\\{:03o}", byte); // three digits, so that a following digit is not swallowed
    else
      out += c;
  }
  return out + "'";
}

} // namespace

std::string shell_quote(std::string_view word) {
  if (word.empty())
    return "''";
  if (std::ranges::any_of(word, is_control) || !is_utf8(word))
    return ansi_quote(word);
  if (std::ranges::all_of(word, is_plain) && word.front() != '=') // zsh expands `=name`
    return std::string(word);
  return single_quote(word);
}

std::string single_quote(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

bool assigns_variable(std::string_view word) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const std::string_view name = word.substr(0, word.find('='));
  return name.size() < word.size() && !name.empty() && std::all_of(name.begin(), name.end(), in_name) &&
         std::isdigit(static_cast<unsigned char>(name.front())) == 0;
}

std::string hint_for_assignment(std::string_view word) {
  return "write `env " + shell_quote(word) + "` in front of the command, or the variable in front of `sharefs`";
}

std::string shell_join(const Argv& argv) {
  std::string out;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i != 0)
      out += ' ';
    // A shell must not read the first word as an assignment (`A=b cmd`).
    const std::string quoted = shell_quote(argv[i]);
    out += i == 0 && assigns_variable(argv[i]) && quoted == argv[i] ? "'" + quoted + "'" : quoted;
  }
  return out;
}

std::string unit_value(std::string_view text) {
  std::string value;
  for (const char c : text)
    value += c == '%' ? "%%" : std::string(1, c);
  return value;
}

std::string unit_word(std::string_view text) {
  std::string word = "\"";
  for (const char c : unit_value(text))
    word += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return word + '"';
}

std::string unit_command(std::string_view text) {
  std::string word;
  for (const char c : unit_word(text))
    word += c == '$' ? "$$" : std::string(1, c);
  return word;
}

} // namespace sharefs

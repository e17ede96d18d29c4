#include "config/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::config {

namespace {

constexpr std::string_view k_digits = "0123456789";

bool only(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

std::string_view without_sign(std::string_view text) {
  return !text.empty() && (text.front() == '+' || text.front() == '-') ? text.substr(1) : text;
}

bool is_number(std::string_view text) {
  text = without_sign(text);
  constexpr std::array<std::string_view, 6> k_special{".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  if (std::ranges::find(k_special, text) != k_special.end())
    return true;
  if (text.starts_with("0x"))
    return only(text.substr(2), "0123456789abcdefABCDEF_");
  if (text.starts_with("0o") || text.starts_with("0b"))
    return only(text.substr(2), "01234567_");
  // The grammar is [0-9_]* [. [0-9_]*] [e[+-][0-9]+], with at least one digit before the exponent.
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    if (!only(without_sign(text.substr(e + 1)), k_digits))
      return false;
    text = text.substr(0, e);
  }
  return only(text, "0123456789_.") && std::ranges::count(text, '.') <= 1 && text.front() != '_' &&
         text.find_first_of(k_digits) != std::string_view::npos;
}

/// True for YYYY-MM-DD, which readers of YAML 1.1 take for a date. Their times have a `:` or a space, and are quoted.
bool is_date(std::string_view text) {
  constexpr std::string_view k_form = "0000-00-00";
  return std::ranges::equal(text, k_form, [](char c, char form) {
    return form == '0' ? k_digits.find(c) != std::string_view::npos : c == form;
  });
}

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || k_digits.find(c) != std::string_view::npos ||
         std::string_view("_./-+").find(c) != std::string_view::npos;
}

} // namespace

std::optional<std::string_view> plain_meaning(std::string_view text) {
  // yaml.org/type/bool.html and null.html, in lower, capital and upper case (without y and n, which no reader accepts).
  constexpr std::array<std::string_view, 5> k_null{"", "~", "null", "Null", "NULL"};
  constexpr std::array<std::string_view, 18> k_boolean{"true", "True", "TRUE", "false", "False", "FALSE",
                                                       "yes",  "Yes",  "YES",  "no",    "No",    "NO",
                                                       "on",   "On",   "ON",   "off",   "Off",   "OFF"};
  if (std::ranges::find(k_null, text) != k_null.end())
    return "null";
  if (std::ranges::find(k_boolean, text) != k_boolean.end())
    return "a boolean";
  if (is_number(text))
    return "a number";
  return std::nullopt;
}

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string yaml_scalar(std::string_view text) {
  constexpr std::string_view k_indicators = "-.+"; // could begin a list entry, a document end or a number
  const bool plain = !text.empty() && std::ranges::all_of(text, is_safe) && !plain_meaning(text) && !is_date(text) &&
                     k_indicators.find(text.front()) == std::string_view::npos;
  return plain ? std::string(text) : yaml_quoted(text);
}

} // namespace sharefs::config

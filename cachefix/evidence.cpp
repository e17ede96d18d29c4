// What a Python script shows about its own --cache_dir: a few certain signs, and "none" for everything else.
#include "cachefix/sanitize.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_name = "cache_dir";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The text without comments; strings stay. Good enough for signs: a `#` inside a string only hides evidence.
std::string without_comments(const std::string& source) {
  std::string out;
  for (const std::string& line : split_lines(source)) {
    const auto hash = line.find('#');
    out += line.substr(0, hash);
    out += '\n';
  }
  return out;
}

std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      out += c;
  return out;
}

/// From the `(` at `open` to its partner, without white space; strings are skipped over.
std::string call_at(const std::string& text, std::size_t open) {
  if (open >= text.size())
    return {};
  int depth = 0;
  char quote = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      return squeezed(std::string_view(text).substr(open, i - open + 1));
    }
  }
  return squeezed(std::string_view(text).substr(open));
}

/// `add_argument("--cache_dir", ...)`: not required, and no default but None.
bool is_optional_argument(const std::string& call) {
  if (call.find("required=True") != std::string::npos || call.find("nargs") != std::string::npos)
    return false;
  const auto fallback = call.find("default=");
  return fallback == std::string::npos || call.substr(fallback).starts_with("default=None");
}

/// `cache_dir: Optional[str] = field(default=None, ...)` or `= None`.
bool is_optional_field(const std::string& text, std::size_t at) {
  const std::string rest = squeezed(std::string_view(text).substr(at, 400));
  const auto equals = rest.find('=');
  if (equals == std::string::npos || equals > 60)
    return false;
  const std::string value = rest.substr(equals + 1);
  if (value.starts_with("None"))
    return true;
  if (!value.starts_with("field("))
    return false;
  const auto fallback = value.find("default=");
  return fallback != std::string::npos && value.substr(fallback).starts_with("default=None");
}

/// After a name in quotes: the closing quote and a colon. The text may end anywhere.
bool is_dictionary_key(std::string_view behind) {
  const std::string next = squeezed(behind.substr(0, 4));
  return next.size() > 1 && next[1] == ':';
}

} // namespace

Evidence evidence_of(const std::string& python_source) {
  const std::string text = without_comments(python_source);
  int definitions = 0;
  bool models = false;
  bool datasets = false;
  for (std::size_t at = text.find(k_name); at != std::string::npos; at = text.find(k_name, at + 1)) {
    const std::size_t after = at + k_name.size();
    const char before = at == 0 ? '\n' : text[at - 1];
    const char next = after < text.size() ? text[after] : '\n';
    if (is_word(next) || (is_word(before) && before != '_'))
      continue; // another name
    if (before == '_')
      continue; // model_cache_dir: not ours
    std::size_t look = after;
    while (look < text.size() && text[look] == ' ')
      ++look;
    const char operation = look < text.size() ? text[look] : '\n';
    const bool quoted = before == '"' || before == '\'';
    if (before == '-') { // "--cache_dir" in add_argument
      const auto call = text.rfind("add_argument", at);
      const auto open = call == std::string::npos ? call : text.find('(', call);
      if (open == std::string::npos || open > at || at - call > 60 || !is_optional_argument(call_at(text, open)))
        return Evidence::none;
      ++definitions;
    } else if (operation == ':' && !quoted && (before == ' ' || before == '\t')) {
      if (!is_optional_field(text, after))
        return Evidence::none;
      ++definitions;
    } else if ((operation == '=' && look + 1 < text.size() && text[look + 1] != '=') ||
               (quoted && is_dictionary_key(std::string_view(text).substr(after)))) {
      // A keyword or dictionary entry: what it gets must be some X.cache_dir, which is then skipped.
      const auto value = text.find(k_name, after);
      const std::string between =
          value == std::string::npos ? "" : squeezed(std::string_view(text).substr(look, value - look));
      const bool handed_on = !between.empty() && between.back() == '.' && between.size() < 60 &&
                             between.find('(') == std::string::npos && between.find(',') == std::string::npos;
      if (!handed_on)
        return Evidence::none;
      at = value;
      models = models || quoted;
    } else {
      return Evidence::none; // some other use
    }
  }
  for (const std::string_view loader : {"from_pretrained(", "hf_hub_download(", "snapshot_download("})
    for (auto at = text.find(loader); at != std::string::npos; at = text.find(loader, at + 1))
      models = models || call_at(text, at + loader.size() - 1).find("cache_dir") != std::string::npos;
  datasets = text.find("load_dataset(") != std::string::npos;
  if (definitions != 1 || (!models && !datasets))
    return Evidence::none;
  return models ? Evidence::environment : Evidence::datasets_only;
}

} // namespace sharefs::cachefix

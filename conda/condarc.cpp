#include "conda/condarc.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>

namespace sharefs::conda {

namespace {

constexpr std::string_view k_mark = " # by sharefs conda link --condarc";
constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

struct Line {
  std::size_t begin = 0, end = 0; ///< without its end
  std::size_t number = 1;
};

/// A directory of `envs_dirs`.
struct Element {
  std::string value;
  std::size_t begin = 0, end = 0; ///< as it is written
  Line line;
};

struct Condarc {
  std::optional<Line> key;     ///< of `envs_dirs`
  bool flow = false;           ///< `[a, b]`
  std::vector<Element> values; ///< none without a key; at least one with it
};

tl::unexpected<Error> refuse(const Line& line, std::string_view what) {
  return fail(ErrorCode::unsupported, fmt::format("line {}: {}", line.number, what));
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.push_back({begin, end, number});
    begin = end + 1;
  }
  return lines;
}

std::string_view without_comment(std::string_view text) {
  if (text.starts_with('#'))
    return {};
  return text.substr(0, std::min({text.find(" #"), text.find("\t#"), text.size()}));
}

/// A text without escapes; nullopt: anything else that YAML knows.
std::optional<std::string> scalar(std::string_view written) {
  if (written.size() >= 2 && (written.front() == '"' || written.front() == '\'') && written.back() == written.front()) {
    const auto inner = written.substr(1, written.size() - 2);
    if (inner.empty() || inner.find_first_of("\"'\\") != std::string_view::npos)
      return std::nullopt;
    return std::string(inner);
  }
  const bool plain = !written.empty() && written.find_first_of("\"'[]{},#\t") == std::string_view::npos &&
                     std::string_view("&*!|>%@`?-:").find(written.front()) == std::string_view::npos &&
                     written.find(": ") == std::string_view::npos && !written.ends_with(':');
  return plain ? std::optional<std::string>(written) : std::nullopt;
}

std::string written(const std::string& path) {
  const bool plain = std::ranges::all_of(path, [](char letter) {
    return k_letters.find(letter) != std::string_view::npos ||
           std::string_view("/._+-@").find(letter) != std::string_view::npos;
  });
  return plain ? path : '"' + path + '"';
}

/// What stands in front of the `:` of a line that begins a value; empty: it is no such line.
std::string_view key_of(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\t'))
    return {};
  const auto key = trim(line.substr(0, colon));
  const bool plain = !key.empty() && !line.starts_with(' ') && std::ranges::all_of(key, [](char letter) {
    return k_letters.find(letter) != std::string_view::npos || letter == '_' || letter == '-' || letter == '.';
  });
  return plain ? key : std::string_view();
}

class CondarcReader {
 public:
  explicit CondarcReader(std::string_view text) : m_text(text) {}

  Result<Condarc> read() {
    if (!is_utf8(m_text) || m_text.find('\0') != std::string_view::npos)
      return fail(ErrorCode::unsupported, "it is no text");
    for (const auto& line : lines_of(m_text))
      if (auto right = take(line); !right)
        return fail(right.error());
    if (m_found.key && m_found.values.empty())
      return refuse(*m_found.key, "`envs_dirs` is empty");
    return std::move(m_found);
  }

 private:
  Result<void> take(const Line& line) {
    const auto whole = m_text.substr(line.begin, line.end - line.begin);
    const auto content = trim(whole);
    if (content.empty() || content.starts_with('#'))
      return {};
    if (whole.starts_with("---") && !m_began && trim(without_comment(whole.substr(3))).empty()) {
      m_began = true;
      return {};
    }
    const bool dash = content == "-" || content.starts_with("- ");
    if (whole.front() == ' ' || whole.front() == '\t' || dash) {
      if (m_key.empty())
        return refuse(line, dash ? "it is a list, not keys with values" : "keys that are indented are not changed");
      return m_key == "envs_dirs" ? take_item(line, whole) : Result<void>();
    }
    m_began = true;
    m_key = key_of(whole);
    if (m_key.empty())
      return refuse(line, "it does not begin with `KEY:`");
    const auto rest = trim(whole.substr(whole.find(':') + 1));
    if ((rest.starts_with('"') || rest.starts_with('\'')) && rest.find(rest.front(), 1) == std::string_view::npos)
      return refuse(line, "a quoted text over several lines");
    const auto value = trim(without_comment(rest));
    if (m_key == "envs_path")
      return refuse(line, "`envs_path` is conda's other name of `envs_dirs`, which mamba does not know");
    return m_key == "envs_dirs" ? take_key(line, value) : Result<void>();
  }

  Result<void> take_key(const Line& line, std::string_view value) {
    if (m_found.key)
      return refuse(line, fmt::format("`envs_dirs` stands on line {} already", m_found.key->number));
    m_found.key = line;
    if (value.empty())
      return {};
    m_found.flow = true;
    if (value.front() != '[')
      return refuse(line, "`envs_dirs` is no list of directories");
    if (value.back() != ']')
      return refuse(line, "`envs_dirs` is a list in brackets over several lines");
    const auto inner = value.substr(1, value.size() - 2);
    auto begin = static_cast<std::size_t>(inner.data() - m_text.data());
    if (trim(inner).empty())
      return {};
    for (const auto& part : split(inner, ',')) {
      if (auto added = add(line, begin, begin + part.size()); !added)
        return added;
      begin += part.size() + 1;
    }
    return {};
  }

  Result<void> take_item(const Line& line, std::string_view whole) {
    const auto dash = whole.find_first_not_of(' ');
    if (m_found.flow || !whole.substr(dash).starts_with("- ") || (m_dash && *m_dash != dash))
      return refuse(line, m_found.flow ? "`envs_dirs` goes on behind its brackets"
                                       : "`envs_dirs` holds something else than a list of directories");
    m_dash = dash;
    const auto begin = line.begin + dash + 1;
    const auto value = without_comment(m_text.substr(begin, line.end - begin));
    return add(line, begin, begin + value.size());
  }

  Result<void> add(const Line& line, std::size_t begin, std::size_t end) {
    const auto part = trim(m_text.substr(begin, end - begin));
    auto value = scalar(part);
    if (!value)
      return refuse(line, "an element of `envs_dirs` is no plain path");
    begin = static_cast<std::size_t>(part.data() - m_text.data());
    m_found.values.push_back({std::move(*value), begin, begin + part.size(), line});
    return {};
  }

  std::string_view m_text;
  std::string_view m_key; ///< what the line belongs to
  bool m_began = false;
  std::optional<std::size_t> m_dash;
  Condarc m_found;
};

auto find_value(const Condarc& condarc, const std::string& path) {
  return std::ranges::find_if(condarc.values, [&](const Element& one) {
    return one.value.starts_with('/') && normalize_path(one.value) == path;
  });
}

/// The line with one of its two ends: the last one may have none behind it.
std::string without_line(std::string_view text, const Line& line) {
  const auto begin = line.end == text.size() && line.begin > 0 ? line.begin - 1 : line.begin;
  return std::string(text.substr(0, begin)) + std::string(text.substr(std::min(line.end + 1, text.size())));
}

} // namespace

std::string envs_directories_line(const std::string& own, const std::string& store) {
  return fmt::format("envs_dirs: [{}, {}]", written(own), written(store));
}

Result<std::string> with_envs_directory(std::string_view text, const std::string& own, const std::string& store) {
  for (const auto& path : {own, store})
    if (path.find_first_of("\"'\\$") != std::string::npos)
      return fail(ErrorCode::unsupported, fmt::format("conda could not read the path {} from it", path));
  const auto condarc = CondarcReader(text).read();
  if (!condarc)
    return fail(condarc.error());
  if (find_value(*condarc, store) != condarc->values.end())
    return std::string(text);
  std::string changed(text);
  if (!condarc->key) {
    const bool ends = text.empty() || text.ends_with('\n');
    return changed + (ends ? "" : "\n") + envs_directories_line(own, store) + std::string(k_mark) + (ends ? "\n" : "");
  }
  const auto& first = condarc->values.front();
  if (condarc->flow)
    return changed.insert(first.end, ", " + written(store));
  const auto dash = first.line.begin + text.substr(first.line.begin).find('-');
  const auto front = text.substr(first.line.begin, dash - first.line.begin);
  return changed.insert(first.line.end, fmt::format("\n{}- {}", front, written(store)));
}

Result<std::string> without_envs_directory(std::string_view text, const std::string& store) {
  const auto condarc = CondarcReader(text).read();
  if (!condarc)
    return text.find(store) == std::string_view::npos ? Result<std::string>(std::string(text)) : fail(condarc.error());
  const auto found = find_value(*condarc, store);
  if (found == condarc->values.end())
    return std::string(text);
  const auto& values = condarc->values;
  const auto key = text.substr(condarc->key->begin, condarc->key->end - condarc->key->begin);
  if (key.ends_with(k_mark) && values.size() == 2 && found == std::next(values.begin()))
    return without_line(text, *condarc->key);
  if (values.size() == 1 && condarc->flow)
    return without_line(text, *condarc->key);
  if (!condarc->flow) {
    auto rest = without_line(text, found->line);
    return values.size() == 1 ? without_line(rest, *condarc->key) : rest;
  }
  std::string rest(text);
  if (found == values.begin())
    return rest.erase(found->begin, std::next(found)->begin - found->begin);
  return rest.erase(std::prev(found)->end, found->end - std::prev(found)->end);
}

std::vector<EnvsVariable> envs_variables(const std::string& path, std::string_view text) {
  std::vector<EnvsVariable> found;
  for (const auto& line : lines_of(text)) {
    auto words = trim(text.substr(line.begin, line.end - line.begin));
    for (const std::string_view front : {"export ", "setenv ", "declare -x ", "typeset -x "})
      if (words.starts_with(front))
        words = trim(words.substr(front.size()));
    for (const std::string_view name : {"CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"})
      if (words.starts_with(name) && words.size() > name.size() &&
          (words[name.size()] == '=' || words[name.size()] == ' '))
        found.push_back({std::string(name), fmt::format("{}:{}", path, line.number)});
  }
  return found;
}

} // namespace sharefs::conda

#include "cachefix/table.hpp"

#include "base/text.hpp"

#include <map>

namespace sharefs::cachefix {
extern const char k_launchers_table[];
extern const char k_caches_table[];

namespace {

constexpr std::string_view k_separator = "| "; // with a space in front, for which it would take long to search

using Tables = std::map<std::string, std::vector<Row>, std::less<>>;

/// Joins continued lines: one that begins with a space continues the line above. Within braces the two are joined
/// without a space, because `{a,` and `b}` are one word.
std::vector<std::string> join_lines(std::string_view text) {
  std::vector<std::string> lines;
  bool in_braces = false;
  each_word(text, '\n', [&](std::string_view line) {
    if (line.front() == '#')
      return;
    if (line.front() != ' ') {
      lines.emplace_back(line);
      in_braces = false;
    } else {
      lines.back() += (in_braces ? "" : " ") + std::string(trim(line));
    }
    if (const auto brace = line.find_last_of("{}"); brace != std::string_view::npos)
      in_braces = line[brace] == '{';
  });
  return lines;
}

Tables read_tables() {
  Tables tables;
  for (const char* text : {k_launchers_table, k_caches_table})
    for (const std::string& line : join_lines(text)) {
      const auto space = line.find(' ');
      const auto end = std::min(line.find(k_separator, space), line.size());
      tables[line.substr(0, space)].push_back(
          {std::string(trim(std::string_view(line).substr(space, end - space))), line.substr(end)});
    }
  return tables;
}

/// Replaces `$race` by the text of the row `words race`. Other names stay: they are variables that are expanded later.
std::string expand_words(std::string_view text, const std::map<std::string, std::string, std::less<>>& words) {
  const auto value_of = [&](std::string_view name, std::size_t) -> std::optional<std::string> {
    const auto known = words.find(name);
    return known == words.end() ? "$" + std::string(name) : known->second;
  };
  return expand_variables(text, value_of).value_or(std::string(text));
}

/// Returns the texts of the rows `words`, by name; each may use those above it.
const std::map<std::string, std::string, std::less<>>& all_words() {
  static const auto k_words = [] {
    std::map<std::string, std::string, std::less<>> words;
    for (const Row& row : rows_of("words"))
      words[row.name] = expand_words(row.fields().at(0).second, words);
    return words;
  }();
  return k_words;
}

} // namespace

std::vector<std::pair<std::string_view, std::string_view>> Row::fields() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (std::string_view left = text; !left.empty();) {
    left.remove_prefix(k_separator.size());
    auto field = left.substr(0, left.find(k_separator));
    left.remove_prefix(field.size());
    field = trim(field);
    const auto colon = field.find(": ");
    const bool named = colon != std::string::npos && field.find(' ') == colon + 1;
    all.emplace_back(named ? field.substr(0, colon) : "", named ? field.substr(colon + 2) : field);
  }
  return all;
}

bool Row::has(std::string_view field) const {
  const auto all = fields();
  return std::ranges::find(all, field, &std::pair<std::string_view, std::string_view>::first) != all.end();
}

std::string Row::get(std::string_view field) const {
  for (const auto& [key, value] : fields())
    if (key == field)
      return expand_words(value, all_words());
  return "";
}

const std::vector<Row>& rows_of(std::string_view kind) {
  static const Tables k_tables = read_tables();
  return k_tables.find(kind)->second;
}

const std::string& words_of(std::string_view name) {
  return all_words().find(name)->second;
}

std::string underscored(std::string_view option) {
  std::string out(option);
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, out.size())), out.end(), '-', '_');
  return out;
}

bool is_listed(std::string_view name, std::string_view list) {
  return any_word(list, ' ', [&](std::string_view word) {
    return word.ends_with('*')                        ? name.starts_with(word.substr(0, word.size() - 1))
           : word.size() > 1 && word.starts_with('*') ? name.ends_with(word.substr(1))
                                                      : name == word;
  });
}

} // namespace sharefs::cachefix

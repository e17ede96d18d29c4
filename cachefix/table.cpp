#include "cachefix/table.hpp"

#include "base/text.hpp"

namespace sharefs::cachefix {
extern const char k_launchers_table[];
extern const char k_caches_table[];

namespace {

using Tables = std::map<std::string, std::vector<Row>, std::less<>>;

/// Joins continued lines: one that begins with a space continues the line above. Within braces the two are joined
/// without a space, because `{a,` and `b}` are one word.
std::vector<std::string> join_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split_lines(text)) {
    if (line.empty() || line.front() == '#')
      continue;
    if (line.front() != ' ') {
      lines.push_back(line);
      continue;
    }
    std::string& above = lines.back();
    const auto open = above.rfind('{'), close = above.rfind('}');
    const bool in_braces = open != std::string::npos && (close == std::string::npos || close < open);
    above += (in_braces ? "" : " ") + std::string(trim(line));
  }
  return lines;
}

/// Replaces `$race` by the text of the row `words race`. Other names stay: they are variables that are expanded later.
std::string expand_words(const std::string& text, const std::vector<Row>& words) {
  const auto value_of = [&](std::string_view name, std::size_t) -> std::optional<std::string> {
    const auto known = std::ranges::find(words, name, &Row::name);
    return known == words.end() ? "$" + std::string(name) : known->get("");
  };
  return expand_variables(text, value_of).value_or(text);
}

Tables read_tables() {
  Tables tables;
  for (const char* text : {k_launchers_table, k_caches_table})
    for (const std::string& line : join_lines(text)) {
      const auto space = line.find(' ');
      std::vector<Row>& rows = tables[line.substr(0, space)];
      Row row;
      std::size_t at = space + 1;
      for (std::size_t number = 0; at < line.size(); ++number) {
        const auto end = std::min(line.find(" | ", at), line.size());
        std::string field = line.substr(at, end - at);
        const auto colon = field.find(": ");
        const bool named = colon != std::string::npos && field.find(' ') == colon + 1;
        if (number == 0)
          row.name = std::move(field);
        else
          row.fields[named ? field.substr(0, colon) : ""] =
              expand_words(named ? field.substr(colon + 2) : field, tables["words"]);
        at = end + 3;
      }
      rows.push_back(std::move(row));
    }
  return tables;
}

} // namespace

std::string Row::get(std::string_view field) const {
  const auto found = fields.find(field);
  return found == fields.end() ? "" : found->second;
}

const std::vector<Row>& rows_of(std::string_view kind) {
  static const Tables k_tables = read_tables();
  return k_tables.find(kind)->second;
}

const std::string& words_of(std::string_view name) {
  return std::ranges::find(rows_of("words"), name, &Row::name)->fields.begin()->second;
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

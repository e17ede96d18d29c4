#pragma once
// Reads the room's tables, launchers/launchers.txt and guard/sharefs_guard/caches.txt, which are compiled in. Their
// first lines explain the format.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::cachefix {

struct Row {
  std::string name;
  std::string text; ///< its fields, each behind "| "; only what is asked for is taken apart, since `run` reads all rows
  /// Returns the name ("" if it has none) and the text of each field, as they stand there.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> fields() const;
  /// Returns the text of a field, with the words that it names; empty if the row has no such field.
  [[nodiscard]] std::string get(std::string_view field) const;
  [[nodiscard]] bool has(std::string_view field) const;
};
/// Returns all rows of one kind ("launcher", "variable"), in the order of the table.
const std::vector<Row>& rows_of(std::string_view kind);
/// Returns the text of the row `words NAME`.
const std::string& words_of(std::string_view name);

/// Calls `f` with each word of a list.
template <class F> void each_word(std::string_view list, char separator, F f) {
  while (!list.empty()) {
    const auto end = std::min(list.find(separator), list.size());
    if (end != 0)
      f(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}
/// True if `f` returns true for one of the words.
template <class F> bool any_word(std::string_view list, char separator, F f) {
  bool found = false;
  each_word(list, separator, [&](std::string_view word) { found = found || f(word); });
  return found;
}
/// Returns the enumerator whose number is the place of `name` in a list of words; nullopt if `name` is not in it.
template <class Enum> std::optional<Enum> enumerator(std::string_view names, std::string_view name) {
  int number = 0;
  std::optional<Enum> found;
  each_word(names, ' ', [&](std::string_view one) {
    if (one == name)
      found = static_cast<Enum>(number);
    ++number;
  });
  return found;
}
/// True if `name` is one of the words of `list`. `*` at the beginning or the end of a word matches anything.
bool is_listed(std::string_view name, std::string_view list);
/// Returns the name of an option with `_` for `-` (`--cache_dir` for `--cache-dir`): no program has both.
std::string underscored(std::string_view option);
/// True if one of `words` is in `list`.
template <class Words> bool any_listed(const Words& words, std::string_view list) {
  return std::ranges::any_of(words, [&](std::string_view word) { return is_listed(word, list); });
}

} // namespace sharefs::cachefix

#pragma once
// The text of a configuration file and places in it, which every message of this room names.
#include "base/result.hpp"
#include "config/config.hpp"

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

inline constexpr std::size_t k_max_bytes = 1U << 20U; ///< far more than a configuration that is written by hand

/// A line and a column, both from 1; a column counts characters, not bytes. Line 0 means no place.
struct Place {
  int line = 0, column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Something wrong at a place; `message` and `hint` as in Error.
struct Problem {
  Place place;
  std::string message, hint;
};

/// The problems of a file. Only the first ones are kept, because a broken file of 1 MiB has very many.
struct Problems {
  void add(const Place& place, std::string message, std::string hint) {
    if (found.size() < k_most)
      found.push_back({place, std::move(message), std::move(hint)});
    else
      ++further;
  }
  static constexpr std::size_t k_most = 100;
  std::vector<Problem> found;
  std::size_t further = 0;
};

class Source {
 public:
  /// `text` must outlive the Source; a UTF-8 byte order mark at its front is skipped.
  Source(std::string_view text, std::string file);

  [[nodiscard]] std::string_view text() const { return m_text; }
  [[nodiscard]] const std::string& file() const { return m_file; }

  /// Returns the reason why the bytes cannot be a configuration: too large, not UTF-8, or control characters.
  [[nodiscard]] std::optional<Problem> find_unreadable() const;
  /// Returns the place of a byte. `line` counts from 0 and `byte` from the beginning of that line, as yaml-cpp counts.
  [[nodiscard]] Place place(int line, int byte) const;
  /// Returns the place of the byte at this offset.
  [[nodiscard]] Place place_of(std::size_t offset) const;
  [[nodiscard]] std::string_view line(int number) const; ///< from 1, without its end; empty beyond the file
  [[nodiscard]] Origin origin(const Place& place) const { return {m_file, place.line, place.column}; }
  /// Returns `FILE:LINE:COLUMN: message`, with the source line and a caret in the context.
  [[nodiscard]] Error error(const Problem& problem) const;

 private:
  std::string_view m_text;
  std::string m_file;
  std::vector<std::size_t> m_lines;         ///< offset of each line's first byte
  std::vector<std::size_t> m_continuations; ///< offsets of UTF-8 continuation bytes
};

/// Returns `text` for use in a message: one line, invisible characters escaped, at most 60 columns.
std::string shown(std::string_view text);

} // namespace sharefs::config

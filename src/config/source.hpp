#pragma once
// The text of a configuration file and places in it: what every message of this room points at.
#include "base/result.hpp"
#include "config/config.hpp"

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

inline constexpr std::size_t k_max_bytes = 1U << 20U; ///< no configuration written by hand comes near it

/// Line and column from 1; a column counts characters, not bytes. Line 0: nowhere.
struct Place {
  int line = 0, column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Something wrong at a place; `message` and `hint` as in Error.
struct Problem {
  Place place;
  std::string message, hint;
};

/// The problems of a file, of which only the first that are found are kept: a broken file of a mebibyte has very many.
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

  /// The reason why the bytes are no configuration at all: too large, not UTF-8, control characters.
  [[nodiscard]] std::optional<Problem> unreadable() const;
  /// Place of a byte: `line` from 0 and bytes from the beginning of that line, as yaml-cpp counts.
  [[nodiscard]] Place place(int line, int byte) const;
  [[nodiscard]] Place place_of(std::size_t offset) const;
  [[nodiscard]] std::string_view line(int number) const; ///< from 1, without its end; empty beyond the file
  [[nodiscard]] Origin origin(const Place& place) const { return {m_file, place.line, place.column}; }
  /// `FILE:LINE:COLUMN: message` with the line and a caret in the context.
  [[nodiscard]] Error error(const Problem& problem) const;

 private:
  std::string_view m_text;
  std::string m_file;
  std::vector<std::size_t> m_lines;         ///< offset of each line's first byte
  std::vector<std::size_t> m_continuations; ///< offsets of UTF-8 bytes that begin no character
};

/// `text` for use in a message: one line, invisible characters escaped, at most 60 columns.
std::string shown(std::string_view text);

} // namespace sharefs::config

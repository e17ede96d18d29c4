#pragma once
// Splits an exports file into words as nfs-utils does (support/nfs/xio.c).
#include "exports/export.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

// The sizes of nfs-utils' buffers: NFS_MAXPATHLEN + 1, and char exp[512] in getexportent(). A word of this length is
// too long.
inline constexpr std::size_t k_path_limit = 1025;
inline constexpr std::size_t k_client_limit = 512;

struct Word {
  std::string text;        ///< quotes removed, `\ooo` decoded, cut at a NUL byte like a C string
  std::size_t begin = 0;   ///< offset of the word in the source
  bool open_quote = false; ///< the file ends inside a quoted part
  bool nul = false;        ///< a NUL byte, quoted or written `\000`, hides the rest of the word
  bool nul_behind = false; ///< a NUL byte ends the word, as a blank would
};

/// Reads forward from its position; a caller copies it to look ahead.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : m_source(source) {}

  enum class Got {
    word,
    nothing,  ///< the line or the file ends here, or there is an empty word (`""`, a stray carriage return)
    too_long, ///< `limit` bytes or more
  };
  /// Reads the next word of this line.
  Got next(std::size_t limit, Word& word);
  /// Returns the offset in the source of each byte of the text of `word`, which next() has read.
  [[nodiscard]] std::vector<std::size_t> offsets_of(const Word& word) const;
  /// Skips blanks and a comment, but stays on this line.
  void skip_blanks() { skip(" \t"); }
  /// Skips blanks, comments and empty lines.
  void skip_lines() { skip(" \t\n"); }
  /// Skips the rest of this line and its continuation lines.
  void skip_rest_of_line();

  [[nodiscard]] std::size_t offset() const { return m_at; }
  [[nodiscard]] bool at_end() const { return m_at >= m_source.size(); }
  [[nodiscard]] bool at_line_end() const { return at_end() || m_source[m_at] == '\n'; }

 private:
  Got read(std::size_t limit, Word& word, std::vector<std::size_t>* offsets);
  int read_byte(); ///< reads one byte; a backslash, newline and the blanks after them are one space; -1 at the end
  void skip(std::string_view set);

  std::string_view m_source;
  std::size_t m_at = 0;
};

/// Turns offsets in a file into lines and columns.
class LineIndex {
 public:
  explicit LineIndex(std::string_view source, std::string file = {});
  [[nodiscard]] Origin at(std::size_t offset) const;

 private:
  std::vector<std::size_t> m_starts;
  std::string m_file;
};

} // namespace sharefs::exports

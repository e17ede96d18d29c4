#pragma once
// The words of an exports file, split as nfs-utils splits them (support/nfs/xio.c).
#include "exports/export.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

// Buffers of nfs-utils: NFS_MAXPATHLEN + 1, and char exp[512] in getexportent(). So many bytes are too many.
inline constexpr std::size_t k_path_limit = 1025;
inline constexpr std::size_t k_client_limit = 512;

struct Word {
  std::string text;        ///< quotes removed, `\ooo` decoded, cut at a NUL byte as a C string is
  std::size_t begin = 0;   ///< of the word in the source
  bool open_quote = false; ///< the file ends inside a quoted part
  bool nul = false;        ///< a NUL byte hides the rest of the word
  bool nul_behind = false; ///< a NUL byte ends it, as a blank would
};

/// Reads on from where it is; copy it to look ahead.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : m_source(source) {}

  enum class Got {
    word,
    nothing,  ///< the line or the file ends here, or an empty word (`""`, a stray carriage return) stands here
    too_long, ///< `limit` bytes or more
  };
  /// The next word of this line.
  Got next(std::size_t limit, Word& word);
  /// Where each byte of the text of `word`, which next() gave, begins in the source.
  [[nodiscard]] std::vector<std::size_t> offsets_of(const Word& word) const;
  /// Pass blanks and a comment, but stay on this line.
  void skip_blanks() { skip(" \t"); }
  /// Pass blanks, comments and empty lines.
  void skip_lines() { skip(" \t\n"); }
  /// Pass the rest of this line, continuation lines included.
  void skip_rest_of_line();

  [[nodiscard]] std::size_t offset() const { return m_at; }
  [[nodiscard]] bool at_end() const { return m_at >= m_source.size(); }
  [[nodiscard]] bool at_line_end() const { return at_end() || m_source[m_at] == '\n'; }

 private:
  Got read(std::size_t limit, Word& word, std::vector<std::size_t>* offsets);
  int get(); ///< one byte; a backslash and newline, with the blanks behind them, is one space; -1 at the end
  void skip(std::string_view set);

  std::string_view m_source;
  std::size_t m_at = 0;
};

/// Offsets in a file -> places.
class LineIndex {
 public:
  explicit LineIndex(std::string_view source, std::string file = {});
  [[nodiscard]] Origin at(std::size_t offset) const;

 private:
  std::vector<std::size_t> m_starts;
  std::string m_file;
};

} // namespace sharefs::exports

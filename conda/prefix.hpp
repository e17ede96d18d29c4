#pragma once
// Finds and replaces the prefix, which is the absolute path of an environment in its own files. The rules are those of
// conda's core/portability.py; beyond them it replaces one prefix by another, also by a longer one if it fits into the
// room that the build has left for its placeholder. Pure.
#include "base/edit.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

enum class FileMode { text, binary };

/// Guesses the mode of a file without a record: with NUL bytes it is binary, unless these belong to UTF-16 or UTF-32.
FileMode guessed_mode(std::string_view content);

/// A prefix in all encodings that conda searches for: UTF-8, and UTF-16 and UTF-32 in both byte orders.
class PrefixNeedle {
 public:
  explicit PrefixNeedle(std::string prefix);
  [[nodiscard]] const std::string& prefix() const { return m_prefix; }
  /// True if the prefix occurs in `content`, a part of a file; false for `/data/llm` in `/data/llm2/bin` and in
  /// `/mnt/data/llm`.
  [[nodiscard]] bool in(std::string_view content) const;
  /// Returns the number of bytes around a match that decide about it: parts of a file have to overlap by this much.
  [[nodiscard]] std::size_t reach() const;

  struct Encoding {
    std::size_t width = 1; ///< bytes of a character
    bool big_endian = false;
    std::string bytes; ///< of the prefix
  };
  [[nodiscard]] const std::vector<Encoding>& encodings() const { return m_encodings; }

 private:
  std::string m_prefix;
  std::vector<Encoding> m_encodings;
};

/// Checks that a prefix is absolute, normalized, at least two levels deep, at most 1024 bytes long, and has no
/// character that a shell or a script would misread.
Result<void> check_prefix(std::string_view prefix);

struct PrefixChange {
  std::string from, to;
  FileMode mode = FileMode::text;
  // If the path is too long for the kernel or has spaces, a Python script gets `#!/bin/sh` and `'''exec'`, and any
  // other script `#!/usr/bin/env NAME`, as rattler writes them. The first form is turned back into a plain one.
  /// `#!/usr/bin/env NAME` stands for `from`/bin/NAME, because the installer had to write it (see restores_package()).
  bool env_is_prefix = false;
  bool as_built = false; ///< `to` is a placeholder, for which no shebang is too long
  /// Bytes that the build has left for each prefix in a binary file: the length of its placeholder. 0: not known.
  std::size_t slot = 0;
  /// The mode is a guess, so a string in a binary file has to look like a string.
  bool guessed = false;
};

/// Returns the edits; empty if `from` is not in the content. A binary file keeps its length. `unsupported`: a binary
/// file has no room for `to`, or the prefix is not in a string.
Result<Edits> prefix_edits(std::string_view content, const PrefixChange& change);

/// True if the edits of this change give the package's own content, by its checksum: then the file is as installed,
/// with another prefix.
bool restores_package(std::string_view content, PrefixChange change, const std::string& sha256);

/// Returns the interpreter of a script, and its argument if there is one: from `#!`, or from `'''exec'` after
/// `#!/bin/sh`, which rattler, distlib and conda write for long paths. Empty if it is no script.
std::vector<std::string> interpreter_of(std::string_view head);

/// Bytes of a script that are read for its first lines.
inline constexpr std::size_t k_head_bytes = 4096;
/// Returns the prefixes that the first lines of a script or a pkg-config file name: `#!PREFIX/bin/python`, `'''exec'
/// "PREFIX/bin/...`, `prefix=PREFIX`. Prefixes of the system, such as /usr, are left out.
std::vector<std::string> named_prefixes(std::string_view head);

// Compiled Python (.pyc) is never patched: the paths in it have no terminator, and it can be made again.

bool is_compiled(std::string_view path);
/// Returns `a/b.py` for `a/__pycache__/b.cpython-311.opt-1.pyc`; empty for other places, where Python does not compare
/// a compiled file with its source.
std::string source_of(std::string_view pyc);
/// True if the header of PEP 552, the first 16 bytes, has another time (seconds) or size of the source. A file with a
/// hash of its source is left to Python.
bool is_stale(std::string_view header, std::int64_t mtime, std::uint64_t size);

} // namespace sharefs::conda

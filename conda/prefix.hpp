#pragma once
// The prefix: the absolute path of an environment as it stands in the environment's own files. Found and replaced by
// the rules of conda's core/portability.py, and further than those: from one prefix to another, and to a longer one as
// far as the room that the build left for its placeholder goes. Pure.
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

/// What a file without a record is: with NULs it is binary, unless these belong to the characters of a text.
FileMode guessed_mode(std::string_view content);

/// A prefix in the encodings in which conda looks for it: utf-8, and utf-16 and utf-32 in both byte orders.
class PrefixNeedle {
 public:
  explicit PrefixNeedle(std::string prefix);
  [[nodiscard]] const std::string& prefix() const { return m_prefix; }
  /// In a part of a content; false for `/data/llm` in `/data/llm2/bin` and in `/mnt/data/llm`.
  [[nodiscard]] bool in(std::string_view content) const;
  /// The bytes around a match that decide: parts of a content have to overlap by so much.
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

/// A prefix is absolute, normalized, not `/`, and has no character at which a shell or a script would stumble.
Result<void> check_prefix(std::string_view prefix);

struct PrefixChange {
  std::string from, to;
  FileMode mode = FileMode::text;
  // Where the path is too long for the kernel or has spaces, a script of Python gets `#!/bin/sh` and `'''exec'`, any
  // other `#!/usr/bin/env NAME`, as by rattler. From the first its plain form comes back.
  /// `#!/usr/bin/env NAME` stands for `from`/bin/NAME: conda had to write it (see restores_package).
  bool env_is_prefix = false;
  bool as_built = false; ///< no shebang is too long: `to` is a placeholder
  /// Bytes that the build left for each prefix in a binary file: the length of its placeholder. 0: not known.
  std::size_t slot = 0;
  /// The mode is a guess: a binary string has to look like one.
  bool guessed = false;
};

/// Empty: `from` is not in it. A binary file keeps its length. Errors: `unsupported`, where a binary file has no room
/// for `to`, or what holds the prefix is no string.
Result<Edits> prefix_edits(std::string_view content, const PrefixChange& change);

/// The edits make the content of the package again, by its checksum: with them the file is as conda had installed it,
/// whatever was done to it since.
bool restores_package(std::string_view content, PrefixChange change, const std::string& sha256);

/// What starts a script, and its argument, if it has one: by `#!`, or by `'''exec'` behind `#!/bin/sh`, which rattler,
/// distlib and conda write for long paths. Empty: it is no script.
std::vector<std::string> interpreter_of(std::string_view head);

/// Bytes of a script whose first lines are looked at.
inline constexpr std::size_t k_head_bytes = 4096;
/// Prefixes that the first lines of a script or a pkg-config file name: `#!PREFIX/bin/python`, `'''exec'
/// "PREFIX/bin/...`, `prefix=PREFIX`. Not those of the system.
std::vector<std::string> named_prefixes(std::string_view head);

// Compiled Python (.pyc), which is never patched: it holds paths without an end, and it can be made again.

bool is_compiled(std::string_view path);
/// `a/__pycache__/b.cpython-311.opt-1.pyc` -> `a/b.py`; empty for other places, where Python compares nothing.
std::string source_of(std::string_view pyc);
/// By the header of PEP 552, the first 16 bytes: another time (seconds) or size of the source. Those with a hash of it
/// are left to Python.
bool is_stale(std::string_view header, std::int64_t mtime, std::uint64_t size);

} // namespace sharefs::conda

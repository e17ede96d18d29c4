#pragma once
// Golden corpora: text files of parts, a line and the lines below it that are indented by two spaces. A line `>
// COMMAND` is what is tried, what follows it is what is expected, and the other parts describe the world.
// SHAREFS_GOLDEN_UPDATE=1 writes what is found instead of comparing; read the diff before you commit it.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "support/content_of.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace sharefs::test {

struct GoldenPart {
  std::string line;
  std::vector<std::string> block;

  [[nodiscard]] bool is_command() const { return line.starts_with("> "); }
  [[nodiscard]] Argv command() const;
  /// The lines of the block, each with its line end.
  [[nodiscard]] std::string text() const { return block.empty() ? "" : join(block, "\n") + "\n"; }
};

inline bool updates_golden() {
  return std::getenv("SHAREFS_GOLDEN_UPDATE") != nullptr;
}

/// Empty lines within a block belong to it; all others stand between two parts.
inline std::vector<GoldenPart> read_golden(const std::string& text) {
  std::vector<GoldenPart> parts;
  std::size_t empty = 0;
  for (const auto& line : split_lines(text)) {
    if (line.empty()) {
      ++empty;
      continue;
    }
    const bool indented = line.starts_with("  ") && !parts.empty();
    for (; empty > 0; --empty)
      if (indented)
        parts.back().block.emplace_back();
      else
        parts.emplace_back();
    if (indented)
      parts.back().block.push_back(line.substr(2));
    else
      parts.push_back({line, {}});
  }
  return parts;
}

inline std::string write_golden(const std::vector<GoldenPart>& parts) {
  std::string text;
  for (const auto& part : parts) {
    text += part.line + "\n";
    for (const auto& line : part.block)
      text += line.empty() ? "\n" : "  " + line + "\n";
  }
  return text;
}

/// The *.txt files in and below a directory of tests/golden, sorted.
inline std::vector<std::filesystem::path> golden_files(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  const auto golden = std::filesystem::path(__FILE__).parent_path().parent_path() / "golden";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden / directory))
    if (entry.path().extension() == ".txt")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Words as a shell would split them: '...', "..." and \x.
inline Argv shell_words(const std::string& line) {
  Argv argv;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else if (c == '\\' && quote == '"' && i + 1 < line.size())
        word += line[++i];
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (c == ' ') {
      if (in_word)
        argv.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word)
    argv.push_back(word);
  return argv;
}

inline Argv GoldenPart::command() const {
  return shell_words(line.substr(2));
}

} // namespace sharefs::test

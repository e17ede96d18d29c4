#include "plan/unified_diff.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <dtl/dtl.hpp>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace sharefs::plan {

namespace {

constexpr std::ptrdiff_t k_context = 3; ///< lines of context, the same number as in dtl
/// With more lines than this the shortest diff is not searched for, because the search takes quadratic time in the
/// number of differences.
constexpr std::size_t k_most_differing_lines = 20'000;

using Lines = std::vector<std::string_view>;

/// Splits a text into lines with their newlines, so that a last line without newline differs from one with it.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const auto length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// Returns "3,7": first line and count. The count 1 is left out, and an empty range names the line before it.
std::string range(std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first) : fmt::format("{},{}", count == 0 ? first - 1 : first, count);
}

std::string heading_of(std::size_t first_old, std::size_t old_count, std::size_t first_new, std::size_t new_count) {
  return fmt::format("@@ -{} +{} @@\n", range(first_old, old_count), range(first_new, new_count));
}

/// Adds a line to a hunk; `sign` is ' ', '-' or '+'.
void add(std::string& out, char sign, std::string_view line) {
  out.append(1, sign).append(line);
  if (!line.ends_with('\n'))
    out += "\n\\ No newline at end of file\n";
}

/// Returns the hunks of two texts; `skipped` is the number of equal lines before both.
std::string hunks_of(const Lines& a, const Lines& b, std::size_t skipped) {
  std::string out;
  if (a.size() + b.size() > k_most_differing_lines) {
    out = heading_of(skipped + 1, a.size(), skipped + 1, b.size());
    for (const auto line : a)
      add(out, '-', line);
    for (const auto line : b)
      add(out, '+', line);
    return out;
  }
  dtl::Diff<std::string_view> diff(a, b);
  diff.compose();
  diff.composeUnifiedHunks();
  for (const auto& hunk : diff.getUniHunks()) {
    const auto number = [](long long value) { return static_cast<std::size_t>(value); };
    out += heading_of(skipped + number(hunk.a), number(hunk.b), skipped + number(hunk.c), number(hunk.d));
    for (const auto* part : {&hunk.common[0], &hunk.change, &hunk.common[1]})
      for (const auto& [line, info] : *part)
        add(out, info.type == dtl::SES_ADD ? '+' : info.type == dtl::SES_DELETE ? '-' : ' ', line);
  }
  return out;
}

/// First removes the equal lines at the beginning and at the end, except for the context: in most cases few lines are
/// left to compare.
std::string hunks_of(Lines a, Lines b) {
  const auto context = [](auto equal) { return std::max<std::ptrdiff_t>(equal, k_context) - k_context; };
  const auto prefix = context(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  a.erase(a.begin(), a.begin() + prefix);
  b.erase(b.begin(), b.begin() + prefix);
  const auto suffix = context(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  a.erase(a.end() - suffix, a.end());
  b.erase(b.end() - suffix, b.end());
  return hunks_of(a, b, static_cast<std::size_t>(prefix));
}

bool is_text(const std::optional<std::string>& content) {
  return !content || (is_utf8(*content) && content->find('\0') == std::string::npos);
}

} // namespace

std::string unified_diff(const std::string& path, const std::optional<std::string>& before,
                         const std::optional<std::string>& after) {
  if (before == after)
    return {};
  const auto name = shell_quote(path);
  const auto heading = fmt::format("--- {}\n+++ {}\n", before ? name : "/dev/null", after ? name : "/dev/null");
  if (!is_text(before) || !is_text(after))
    return heading + fmt::format("binary content: {} before, {} after\n",
                                 before ? format_bytes(before->size()) : "none",
                                 after ? format_bytes(after->size()) : "none");
  return heading + hunks_of(lines_of(before.value_or("")), lines_of(after.value_or("")));
}

} // namespace sharefs::plan

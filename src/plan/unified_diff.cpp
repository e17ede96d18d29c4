#include "plan/unified_diff.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace sharefs::plan {

namespace {

constexpr std::size_t k_context = 3;
/// Edits beyond which the search for the shortest script is given up: its memory grows with the square.
constexpr int k_most_edits = 2000;

using Lines = std::vector<std::string_view>;

/// Lines with their newlines, so that a last line without one differs from the same line with one.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const auto length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

struct Edit {
  char kind; ///< ' ', '-' or '+', as in the output
  std::string_view line;
};
using Script = std::vector<Edit>;

/// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), the greedy forward search with its trace kept.
/// Appends to `script`; beyond k_most_edits everything is replaced.
void shortest_edits(const Lines& a, const Lines& b, Script& script) {
  const int n = static_cast<int>(a.size());
  const int m = static_cast<int>(b.size());
  const auto equal = [&](int x, int y) { return a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)]; };
  const int most = std::min(n + m, k_most_edits);
  // furthest[k + most + 1] is the x that the diagonal k = x - y was followed to.
  std::vector<int> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  const auto at = [most](std::vector<int>& row, int k) -> int& { return row[static_cast<std::size_t>(k + most + 1)]; };
  // Row d of the trace holds the diagonals -d-1 .. d+1 before step d.
  std::vector<std::vector<int>> trace;
  const auto traced = [&trace](int d, int k) {
    return trace[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d + 1)];
  };
  const auto goes_down = [](int d, int k, int left, int right) { return k == -d || (k != d && left < right); };

  int edits = -1;
  for (int d = 0; d <= most && edits < 0; ++d) {
    const auto middle = furthest.begin() + most + 1;
    trace.emplace_back(middle - (d + 1), middle + (d + 1) + 1);
    for (int k = -d; k <= d && edits < 0; k += 2) {
      const int left = at(furthest, k - 1);
      const int right = at(furthest, k + 1);
      int x = goes_down(d, k, left, right) ? right : left + 1;
      while (x < n && x - k < m && equal(x, x - k))
        ++x;
      at(furthest, k) = x;
      if (x >= n && x - k >= m)
        edits = d;
    }
  }
  if (edits < 0) {
    for (const auto line : a)
      script.push_back({'-', line});
    for (const auto line : b)
      script.push_back({'+', line});
    return;
  }

  Script backwards;
  int x = n;
  int y = m;
  for (int d = edits; d >= 0; --d) {
    const int k = x - y;
    const bool down = d > 0 && goes_down(d, k, traced(d, k - 1), traced(d, k + 1));
    const int from_x = d == 0 ? 0 : down ? traced(d, k + 1) : traced(d, k - 1);
    const int from_y = d == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
    while (x > from_x && y > from_y) {
      --x;
      --y;
      backwards.push_back({' ', a[static_cast<std::size_t>(x)]});
    }
    if (d == 0)
      break;
    if (down)
      backwards.push_back({'+', b[static_cast<std::size_t>(from_y)]});
    else
      backwards.push_back({'-', a[static_cast<std::size_t>(from_x)]});
    x = from_x;
    y = from_y;
  }
  script.insert(script.end(), backwards.rbegin(), backwards.rend());
}

/// The whole script; what is common at both ends is taken off first, which is all there is to do in most cases.
Script edits_between(Lines a, Lines b) {
  const auto prefix = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const Lines head(a.begin(), a.begin() + prefix);
  a.erase(a.begin(), a.begin() + prefix);
  b.erase(b.begin(), b.begin() + prefix);
  const auto suffix = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  const Lines tail(a.end() - suffix, a.end());
  a.erase(a.end() - suffix, a.end());
  b.erase(b.end() - suffix, b.end());
  Script script;
  for (const auto line : head)
    script.push_back({' ', line});
  shortest_edits(a, b, script);
  for (const auto line : tail)
    script.push_back({' ', line});
  return script;
}

/// "3,7": first line and count; the count 1 is left out, and an empty range names the line before it.
std::string range(std::size_t lines_before, std::size_t count) {
  if (count == 1)
    return fmt::format("{}", lines_before + 1);
  return fmt::format("{},{}", count == 0 ? lines_before : lines_before + 1, count);
}

std::string hunks_of(const Script& script) {
  std::string out;
  std::size_t old_line = 0;
  std::size_t new_line = 0;
  std::size_t at = 0; // old_line and new_line count the lines before script[at]
  const auto pass = [&](std::size_t to) {
    for (; at < to; ++at) {
      old_line += script[at].kind != '+' ? 1U : 0U;
      new_line += script[at].kind != '-' ? 1U : 0U;
    }
  };
  const auto next_change = [&script](std::size_t from) {
    while (from < script.size() && script[from].kind == ' ')
      ++from;
    return from;
  };
  for (std::size_t change = next_change(0); change < script.size();) {
    std::size_t end = change + 1; // behind the last change of the hunk
    std::size_t next = next_change(end);
    while (next < script.size() && next - end <= 2 * k_context) {
      end = next + 1;
      next = next_change(end);
    }
    std::size_t begin = change - std::min(change, k_context);
    change = next;
    pass(begin);
    const auto first_old = old_line;
    const auto first_new = new_line;
    const auto last = std::min(end + k_context, script.size());
    pass(last);
    out +=
        fmt::format("@@ -{} +{} @@\n", range(first_old, old_line - first_old), range(first_new, new_line - first_new));
    for (; begin < last; ++begin) {
      out += script[begin].kind;
      out += script[begin].line;
      if (!script[begin].line.ends_with('\n'))
        out += "\n\\ No newline at end of file\n";
    }
  }
  return out;
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
  return heading + hunks_of(edits_between(lines_of(before.value_or("")), lines_of(after.value_or(""))));
}

} // namespace sharefs::plan

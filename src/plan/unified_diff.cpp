#include "plan/unified_diff.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <dtl/dtl.hpp>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::plan {

namespace {

constexpr std::size_t k_context = 3;
/// With more lines than this the shortest script is not searched for, because the search is quadratic in what differs.
constexpr std::size_t k_most_differing_lines = 20'000;

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

void add(Script& script, char kind, const Lines& lines) {
  for (const auto line : lines)
    script.push_back({kind, line});
}

/// The script of dtl, with what is deleted before what is added wherever both stand side by side.
Script edits_between(const Lines& a, const Lines& b) {
  Script script;
  if (a.size() + b.size() > k_most_differing_lines) {
    add(script, '-', a);
    add(script, '+', b);
    return script;
  }
  dtl::Diff<std::string_view> diff(a, b);
  diff.compose();
  Lines added;
  for (const auto& [line, info] : diff.getSes().getSequence()) {
    if (info.type == dtl::SES_ADD) {
      added.push_back(line);
      continue;
    }
    if (info.type == dtl::SES_COMMON)
      add(script, '+', std::exchange(added, {}));
    script.push_back({info.type == dtl::SES_COMMON ? ' ' : '-', line});
  }
  add(script, '+', added);
  return script;
}

/// The whole script. The lines that are common at both ends are taken off first, and in most cases nothing else is
/// left.
Script whole_script(Lines a, Lines b) {
  const auto prefix = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const Lines head(a.begin(), a.begin() + prefix);
  a.erase(a.begin(), a.begin() + prefix);
  b.erase(b.begin(), b.begin() + prefix);
  const auto suffix = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  const Lines tail(a.end() - suffix, a.end());
  a.erase(a.end() - suffix, a.end());
  b.erase(b.end() - suffix, b.end());
  Script script;
  add(script, ' ', head);
  std::ranges::copy(edits_between(a, b), std::back_inserter(script));
  add(script, ' ', tail);
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
  return heading + hunks_of(whole_script(lines_of(before.value_or("")), lines_of(after.value_or(""))));
}

} // namespace sharefs::plan

#include "base/edit.hpp"

#include <algorithm>

namespace sharefs {

std::optional<std::string> apply_edits(std::string_view content, const Edits& edits) {
  std::string result;
  result.reserve(content.size());
  std::uint64_t at = 0;
  for (const auto& edit : edits) {
    if (edit.offset < at || edit.offset > content.size() ||
        content.substr(edit.offset, edit.before.size()) != edit.before)
      return std::nullopt;
    result.append(content.substr(at, edit.offset - at)).append(edit.after);
    at = edit.offset + edit.before.size();
  }
  result.append(content.substr(at));
  return result;
}

Edits invert_edits(const Edits& edits) {
  Edits inverse;
  // Unsigned arithmetic: the sum wraps around where the content shrinks, and the offsets are still right.
  std::uint64_t grown = 0;
  for (const auto& edit : edits) {
    inverse.push_back({edit.offset + grown, edit.after, edit.before});
    grown += edit.after.size() - edit.before.size();
  }
  return inverse;
}

Edits find_edits(std::string_view before, std::string_view after) {
  constexpr std::size_t k_gap = 64;
  const auto shorter = std::min(before.size(), after.size());
  std::size_t begin = 0;
  while (begin < shorter && before[begin] == after[begin])
    ++begin;
  if (before.size() != after.size()) {
    std::size_t end = 0;
    while (end < shorter - begin && before[before.size() - 1 - end] == after[after.size() - 1 - end])
      ++end;
    return {{begin, std::string(before.substr(begin, before.size() - begin - end)),
             std::string(after.substr(begin, after.size() - begin - end))}};
  }
  Edits edits;
  for (auto at = begin; at < shorter;) {
    auto end = at + 1;
    for (auto next = end; next < std::min(shorter, end + k_gap); ++next)
      if (before[next] != after[next])
        end = next + 1;
    edits.push_back({at, std::string(before.substr(at, end - at)), std::string(after.substr(at, end - at))});
    at = end;
    while (at < shorter && before[at] == after[at])
      ++at;
  }
  return edits;
}

} // namespace sharefs

// edit_distance and "did you mean": declared in base/text.hpp.
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const auto difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > limit)
    return limit + 1;
  // Three rows of the dynamic programming table: two back (for a transposition), the last, the current.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped)
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    if (*std::ranges::min_element(current) > limit)
      return limit + 1;
    before_last.swap(last);
    last.swap(current);
  }
  return std::min(last[b.size()], limit + 1);
}

std::optional<std::string> did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::size_t limit = std::clamp<std::size_t>(word.size() / 3, 1, 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate, limit);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean_hint(std::string_view word, const std::vector<std::string>& candidates,
                              const std::string& otherwise) {
  const auto best = did_you_mean(word, candidates);
  return best ? "did you mean `" + *best + "`?" : otherwise;
}

std::string name_hint(std::string_view word, const std::vector<std::string>& names, std::string_view front,
                      std::vector<std::string> further) {
  constexpr std::size_t k_most = 10;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), k_most)));
  further.insert(further.begin(), names.begin(), names.end());
  return did_you_mean_hint(
      word, further,
      names.empty()
          ? ""
          : fmt::format("{} {}{}", front, join(first, ", "),
                        names.size() == first.size() ? "" : fmt::format(" and {} more", names.size() - first.size())));
}

} // namespace sharefs

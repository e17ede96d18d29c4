#include "cli/commands/explain/pages.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace sharefs::cli {

// CMake makes these from docs/diagnoses/NAME.md.
extern const char k_exports_page[], k_mounts_page[], k_conda_page[], k_cachefix_page[], k_fleet_page[], k_doctor_page[],
    k_watch_page[];

namespace {

struct Label {
  std::string_view word;
  std::string Explanation::* part;
};
constexpr std::array<Label, 4> k_labels{{{"Usual cause:", &Explanation::usual},
                                         {"See:", &Explanation::see},
                                         {"Cure:", &Explanation::cure},
                                         {"sharefs:", &Explanation::does}}};

} // namespace

std::vector<Explanation> parse_page(std::string_view text) {
  std::vector<Explanation> found;
  std::string Explanation::* part = nullptr;
  for (const auto& line : split_lines(text)) {
    if (line.starts_with("## ")) {
      const auto space = line.find(' ', 3);
      auto& one = found.emplace_back();
      one.code = line.substr(3, space - 3);
      one.title = space == std::string::npos ? "" : line.substr(space + 1);
      part = &Explanation::cause;
    } else if (part != nullptr) {
      const auto label = std::ranges::find_if(k_labels, [&](const Label& one) { return line.starts_with(one.word); });
      if (label != k_labels.end())
        part = label->part;
      const auto rest = trim(std::string_view(line).substr(label == k_labels.end() ? 0 : label->word.size()));
      auto& into = found.back().*part;
      if (!rest.empty())
        into.append(into.empty() ? "" : " ").append(rest);
    }
  }
  return found;
}

const std::vector<Explanation>& explanations() {
  static const auto k_all = [] {
    std::vector<Explanation> all;
    for (const auto* page :
         {k_exports_page, k_mounts_page, k_conda_page, k_cachefix_page, k_fleet_page, k_doctor_page, k_watch_page})
      std::ranges::move(parse_page(page), std::back_inserter(all));
    std::ranges::sort(all, {}, &Explanation::code);
    return all;
  }();
  return k_all;
}

} // namespace sharefs::cli

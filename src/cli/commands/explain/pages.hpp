#pragma once
// docs/diagnoses, which is compiled in: a section for each code.
#include "base/fields.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

struct Explanation {
  std::string code, title; ///< "SF212", "hung: the server is away"
  std::string cause;       ///< filled: no line ends
  std::string usual;       ///< the usual cause; may be empty
  std::string see, cure, does;
  friend bool operator==(const Explanation&, const Explanation&) = default;
};
template <FieldsOf<Explanation> E> auto fields(E& e) {
  return named("code", e.code, "title", e.title, "cause", e.cause, "usual_cause", e.usual, "see", e.see, "cure", e.cure,
               "sharefs", e.does);
}

/// The sections of a page: `## SFnnn title`, then the text with its parts, which tests/layers/check_codes.py demands.
std::vector<Explanation> parse_page(std::string_view text);

/// Of all pages, by code.
const std::vector<Explanation>& explanations();

} // namespace sharefs::cli

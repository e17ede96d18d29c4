#pragma once
// The pages of docs/diagnoses, which are compiled in: a section for each code.
#include "base/fields.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

struct Explanation {
  std::string code, title; ///< "SF212", "hung: the server is away"
  std::string cause;       ///< the text as one line, to be filled into lines
  std::string usual;       ///< the usual cause; may be empty
  std::string see, cure, does;
  friend bool operator==(const Explanation&, const Explanation&) = default;
};
template <FieldsOf<Explanation> E> auto fields(E& e) {
  return named("code", e.code, "title", e.title, "cause", e.cause, "usual_cause", e.usual, "see", e.see, "cure", e.cure,
               "sharefs", e.does);
}

/// Parses the sections of a page: `## SFnnn title`, then the text with its parts. tests/layers/check_codes.py checks
/// this form.
std::vector<Explanation> parse_page(std::string_view text);

/// Returns the sections of all pages, sorted by code.
const std::vector<Explanation>& explanations();

} // namespace sharefs::cli

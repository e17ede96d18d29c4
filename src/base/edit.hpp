#pragma once
// Changes inside of a content, small enough to be kept: with them it can be made from the one before, and back again.
#include "base/fields.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

/// The bytes `before` at `offset` of the old content become `after`.
struct Edit {
  std::uint64_t offset = 0;
  std::string before, after;
  friend bool operator==(const Edit&, const Edit&) = default;
};
template <FieldsOf<Edit> E> auto fields(E& e) {
  return named("offset", e.offset, "before", e.before, "after", e.after);
}
/// By offset, none inside another.
using Edits = std::vector<Edit>;

/// nullopt: the content does not hold what the edits replace, or they overlap.
std::optional<std::string> edited(std::string_view content, const Edits& edits);
/// The edits that take them back, in the content that they have made.
Edits inverse_of(const Edits& edits);

/// The ranges in which two contents of the same length differ; else the one from the first to the last difference.
Edits difference(std::string_view before, std::string_view after);

} // namespace sharefs

#pragma once
// Edits: small changes of a content. They are small enough to be kept in the journal, and are applied to make the new
// content from the old one, or inverted to go back.
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
/// Edits are sorted by offset, and none lies inside another.
using Edits = std::vector<Edit>;

/// Applies the edits. Returns nullopt where the content does not hold the bytes that an edit replaces, or where edits
/// overlap.
std::optional<std::string> apply_edits(std::string_view content, const Edits& edits);
/// Returns the edits that undo `edits`; they apply to the content that `edits` produced.
Edits invert_edits(const Edits& edits);

/// Compares two contents. Of the same length: returns the ranges in which they differ. Of different lengths: returns
/// one range, from the first to the last difference.
Edits find_edits(std::string_view before, std::string_view after);

} // namespace sharefs

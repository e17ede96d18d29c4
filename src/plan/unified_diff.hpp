#pragma once
// Private to plan: the difference of two texts in the format of `diff -u`.
#include <optional>
#include <string>

namespace sharefs::plan {

/// Returns a unified diff with 3 lines of context; empty if both are equal. nullopt is a file that does not exist
/// (`/dev/null`). For a text with NUL bytes or invalid UTF-8 one line says so. If there are more than 20,000 lines of
/// both texts between the first and the last difference, all of them are shown as replaced, with their context.
std::string unified_diff(const std::string& path, const std::optional<std::string>& before,
                         const std::optional<std::string>& after);

} // namespace sharefs::plan

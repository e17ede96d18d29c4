#pragma once
// Private to plan: the difference of two texts as diff -u shows it.
#include <optional>
#include <string>

namespace sharefs::plan {

/// Unified diff with 3 lines of context; nullopt stands for a file that does not exist (`/dev/null`). Empty if both are
/// equal. A text with NUL bytes or invalid UTF-8 gives one line that says so. Where more
/// than 20,000 lines stand between the first and the last difference, all of them are shown as replaced, with their
/// context.
std::string unified_diff(const std::string& path, const std::optional<std::string>& before,
                         const std::optional<std::string>& after);

} // namespace sharefs::plan

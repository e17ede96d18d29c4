#pragma once
// Captures the standard output of this process and its children.
#include "base/result.hpp"

#include <functional>
#include <string>

namespace sharefs::sys {

/// Calls `work`, and returns at most the first `limit` bytes that were written to descriptor 1 meanwhile. They are kept
/// in memory (memfd_create(2)). If there is an error before the work, it is not done.
Result<std::string> capture_output(std::size_t limit, const std::function<void()>& work);

} // namespace sharefs::sys

#pragma once
// Connects plan/say.hpp to the command line.
#include "cli/context.hpp"
#include "plan/say.hpp"

namespace sharefs::cli {

/// The result must not outlive `context`.
plan::Say say_to(Context& context);

} // namespace sharefs::cli

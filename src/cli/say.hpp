#pragma once
// The command line's side of plan/say.hpp.
#include "cli/context.hpp"
#include "plan/say.hpp"

namespace sharefs::cli {

/// To be used no longer than `context` lives.
plan::Say say_to(Context& context);

} // namespace sharefs::cli

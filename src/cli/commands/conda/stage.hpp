#pragma once
#include "cli/context.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// By --limit and what else says it, but for who reads the share.
Result<conda::Copying> copying_by(Context& context, const Arguments& arguments);
/// Stages an environment of the store, or takes its copies away: the flags and options of `conda stage`.
Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word);

} // namespace sharefs::cli

#pragma once
#include "cli/context.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// One staging works on this host at a time, for each user.
Result<plan::HostLock> lock_staging(Context& context);
/// By --limit and what else says it, but for who reads the share.
Result<conda::CopySettings> copying_by(Context& context, const Arguments& arguments);
/// Stages an environment of the store, or takes its copies away: the flags and options of `conda stage`.
Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word);

} // namespace sharefs::cli

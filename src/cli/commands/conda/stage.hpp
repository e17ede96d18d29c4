#pragma once
#include "cli/context.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// Takes the lock that allows one staging at a time on this host, for each user.
Result<plan::HostLock> lock_staging(Context& context);
/// Returns the settings of a copy from --limit and the other options, without the user who reads the share.
Result<conda::CopySettings> copying_by(Context& context, const Arguments& arguments);
/// Stages an environment of the store, or removes its copies, by the flags and options of `conda stage`.
Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word);

} // namespace sharefs::cli

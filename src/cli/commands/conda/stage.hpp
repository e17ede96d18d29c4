#pragma once
#include "cli/context.hpp"
#include "plan/host_lock.hpp"

namespace sharefs::cli {

/// One command copies to this host at a time: two would write into the same copy.
Result<plan::HostLock> lock_staging(Context& context);
/// Stages an environment of the store, or takes its copies away: the flags and options of `conda stage`.
Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word);

} // namespace sharefs::cli

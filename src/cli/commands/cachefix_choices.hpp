#pragma once
// The settings about caches in sharefs.yaml and on the command line, for the commands that decide about caches.
#include "cachefix/run_plan.hpp"
#include "cli/context.hpp"

namespace sharefs::cli {

/// Returns the settings of sharefs.yaml about caches, or the defaults without a file.
Result<config::Caches> read_caches(Context& context);

struct CacheChoices {
  cachefix::Rules rules;
  cachefix::LocalChoice local;
};
/// Returns `first`, then the rules of sharefs.yaml, in the order in which they count; without a file the defaults.
Result<CacheChoices> choices_of(Context& context, std::vector<cachefix::UserRule> first = {});

/// Returns the guard, with the settings of sharefs.yaml and these rules. Error `not_found`, with the reason, if it is
/// switched off or not installed.
Result<cachefix::Guard> guard_of(Context& context, const std::vector<cachefix::UserRule>& rules);

} // namespace sharefs::cli

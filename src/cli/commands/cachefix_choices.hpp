#pragma once
// What sharefs.yaml and the command line say about caches, for the commands that decide about them.
#include "cachefix/run_plan.hpp"
#include "cli/context.hpp"

namespace sharefs::cli {

struct CacheChoices {
  cachefix::Rules rules;
  cachefix::LocalChoice local;
};
/// The rules of sharefs.yaml behind `first`, in the order in which they count; without a file the defaults.
Result<CacheChoices> choices_of(Context& context, std::vector<cachefix::UserRule> first = {});

/// The guard as sharefs.yaml and these rules want it. Error `not_found`, with the reason: it is switched off, or not
/// installed.
Result<cachefix::Guard> guard_of(Context& context, const std::vector<cachefix::UserRule>& rules);

} // namespace sharefs::cli

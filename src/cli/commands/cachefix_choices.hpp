#pragma once
// The settings about caches in sharefs.yaml and on the command line, for the commands that decide about caches.
#include "cachefix/run_plan.hpp"
#include "cli/context.hpp"

namespace sharefs::cli {

struct CacheChoices {
  config::Caches caches; ///< the settings of sharefs.yaml, or the defaults without a file
  cachefix::Rules rules;
  cachefix::LocalChoice local;
};
/// Returns the settings, with `first` in front of the rules of sharefs.yaml: the first rule that matches counts.
Result<CacheChoices> choices_of(Context& context, std::vector<cachefix::UserRule> first = {});

/// Returns the guard. Error `not_found`, with the reason, if it is switched off or not installed.
Result<cachefix::Guard> guard_of(Context& context, const CacheChoices& choices);

} // namespace sharefs::cli

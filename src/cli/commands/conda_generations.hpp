#pragma once
// What the commands on generations have in common.
#include "cli/commands/conda_support.hpp"
#include "plan/plan.hpp"

#include <functional>

namespace sharefs::cli {

/// Those that keep their generations, with the names of whose notes they are. On another host only that one knows what
/// runs.
std::vector<conda::Use> live_uses(Context& context, const conda::SharedEnvironment& environment);

using MakePlan = std::function<Result<plan::Plan>(const conda::SharedEnvironment&)>;
using FindEnvironment = std::function<Result<conda::SharedEnvironment>(Context&, const StoreName&)>;
using LookAgain = std::function<Result<void>(const conda::SharedEnvironment&)>;
/// Reads again under the lease, and executes what `make` makes of it. What `look_again` refuses when the first steps
/// are done (see plan::ApplyOptions) is taken back.
Result<int> change_environment(Context& context, const std::string& word, std::string_view nothing,
                               const MakePlan& make, const FindEnvironment& find = shared_environment,
                               const LookAgain& look_again = {});

} // namespace sharefs::cli

#pragma once
// How `conda rollback` and `gc` change the generations of a shared environment.
#include "cli/commands/conda/names.hpp"
#include "plan/plan.hpp"

#include <functional>

namespace sharefs::cli {

struct EnvironmentChange {
  std::string nothing; ///< said when there is nothing to do
  std::function<Result<conda::SharedEnvironment>(sys::System&, const std::string& store, const std::string& name)>
      find = conda::find_shared;
  std::function<Result<plan::Plan>(const conda::SharedEnvironment&)> make;
  /// What it refuses when the first steps are done (see plan::ApplyOptions) is taken back. May be empty.
  std::function<Result<void>(const conda::SharedEnvironment& now)> look_again = {};
};
/// Reads the environment again under the lease, and executes what `make` makes of it.
Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change);

} // namespace sharefs::cli

#pragma once
// Changing the generations of a shared environment, for `conda rollback` and `gc`.
#include "cli/commands/conda/names.hpp"
#include "plan/plan.hpp"

#include <functional>

namespace sharefs::cli {

struct EnvironmentChange {
  std::string nothing; ///< message when there is nothing to do
  std::function<Result<conda::SharedEnvironment>(sys::System&, const std::string& store, const std::string& name)> find;
  std::function<Result<plan::Plan>(const conda::SharedEnvironment&)> make;
  /// Checks again when the first steps are done (see plan::ApplyOptions); if it refuses, these steps are undone. May be
  /// empty.
  std::function<Result<void>(const conda::SharedEnvironment& now)> check_again = {};
};
/// Reads the environment again under its lease, makes a plan with `make`, and executes it.
Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change);

} // namespace sharefs::cli

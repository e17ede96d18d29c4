#pragma once
// What doctor looks at: each part is what a command or its room finds out, and nothing of its own.
#include "base/diagnosis.hpp"
#include "cli/context.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cli {

struct Examination {
  std::chrono::milliseconds timeout{5'000};   ///< for the answers of servers
  std::chrono::milliseconds deadline{60'000}; ///< no part is begun after it
  bool plans = false;                         ///< also work out what --fix would do
};

struct Part {
  std::string name; ///< "mounts"
  std::string seen; ///< what there is of it: "2 mounts"; empty: nothing
  Diagnoses found;
  plan::Plan plan;     ///< with Examination::plans
  bool is_root = true; ///< who may apply the plan
};

/// All parts in their order. A part that fails, or is not begun in time, has that as its diagnosis (SF602). What
/// several say of one thing is said once.
std::vector<Part> examine(Context& context, const Examination& how);

} // namespace sharefs::cli

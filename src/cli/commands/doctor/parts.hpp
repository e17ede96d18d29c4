#pragma once
// The parts that doctor examines: each is the check of a command or of a room; doctor has no checks of its own.
#include "base/diagnosis.hpp"
#include "cli/context.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::cli {

struct Examination {
  std::chrono::milliseconds timeout{5'000};   ///< for the answers of servers
  std::chrono::milliseconds deadline{60'000}; ///< no part is begun after it
  bool plans = false;                         ///< also make the plans for --fix
};

struct Part {
  std::string name; ///< "mounts"
  std::string seen; ///< what was checked: "2 mounts"; empty: nothing
  Diagnoses found;
  plan::Plan plan;     ///< with Examination::plans
  bool is_root = true; ///< only root may apply the plan
};

/// Examines all parts, in their order. A part that fails, or is not begun in time, gets a diagnosis that says so
/// (SF602). A finding of several parts is reported once.
std::vector<Part> examine(Context& context, const Examination& how);

} // namespace sharefs::cli

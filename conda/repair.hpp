#pragma once
// `conda verify --repair` of a shared environment: a generation never changes, so the repaired files become the next
// one, with hard links to all sound files.
#include "conda/make_generation.hpp"

namespace sharefs::conda {

struct RepairRequest {
  SharedEnvironment environment;
  EnvironmentState seen; ///< of the present generation
  GenerationSettings settings;
};
/// Returns the steps that follow make_repaired_generation(), with the planned repairs in its notes. Empty if nothing
/// can be repaired.
plan::Plan plan_repaired_generation(const RepairRequest& request, const std::string& hidden);
Result<NewGeneration> make_repaired_generation(sys::System& system, const RepairRequest& request,
                                               const std::string& hidden, const plan::Say& say);

} // namespace sharefs::conda

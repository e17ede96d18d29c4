#pragma once
// `conda verify --repair` of a shared environment: nothing in a generation changes, so what is mended becomes the next
// one, with hard links to all that is right.
#include "conda/make_generation.hpp"

namespace sharefs::conda {

struct RepairRequest {
  SharedEnvironment environment;
  EnvironmentState seen; ///< of the present generation
  bool protect = true;   ///< the generation gets no write bits
  LeaseWish lease;
  ImageWish image;
};
/// The steps that follow the making, with what is going to be mended in the notes. Empty: there is nothing that can be
/// repaired.
plan::Plan plan_repaired_generation(const RepairRequest& request, const std::string& hidden);
Result<NewGeneration> make_repaired_generation(sys::System& system, const RepairRequest& request,
                                               const std::string& hidden, const plan::Say& say);
/// What is still found once that is done.
Diagnoses diagnose_unrepaired_generation(const EnvironmentState& seen);

} // namespace sharefs::conda

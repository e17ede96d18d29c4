#pragma once
// Puts the exports of sharefs.yaml into force: reads the host, asks exportfs, makes the plan, and verifies the result.
#include "exports/plan_export.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

/// The host as it was read, and the plan that was made from it.
struct Proposed {
  Actual actual;
  Composed composed;
  plan::Plan plan;
  std::string nothing; ///< the message for an empty plan
  Diagnoses found;     ///< already reported
};

/// Reads the host into `proposed` and makes the plan. It is called again, with the same `proposed`, when another run
/// has changed the host meanwhile: then names are not resolved again, and the same diagnoses are not reported again.
/// Fails if a diagnosis is an error; then nothing may be changed.
Result<void> propose(sys::System& system, const Request& request, Proposed& proposed, const plan::Say& say);

/// Checks in etab and over the network that the expected exports are in force. A server that was just started gets some
/// seconds to answer.
Result<Diagnoses> verify(sys::System& system, const Request& request, const Proposed& proposed, const plan::Say& say);

/// The exports files to check.
struct CheckRequest {
  std::vector<std::string> names; ///< in the order in which exportfs reads them, "-" for the standard input; none
                                  ///< stands for the files of the host, against its directories and host names
  std::string directory;          ///< relative names begin here
  std::string standard_input;
  bool against_host = false; ///< also checks named files against the host's directories and host names
};
/// The files, what exportfs makes of them, and the diagnoses.
struct Checked {
  HostFiles host;
  ExpectedEtab expected;
  Diagnoses found;
};
/// Fails if a named file cannot be read, or the host cannot be probed.
Result<Checked> check(sys::System& system, const CheckRequest& request, const plan::Say& say);

} // namespace sharefs::exports

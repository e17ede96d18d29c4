#pragma once
// From what sharefs.yaml wants to exports in force: look at the host, ask exportfs, plan; and afterwards, is it so?
#include "exports/plan_export.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

struct Task {
  Request request;
  std::string config_file;          ///< where the desired exports stand
  std::string address;              ///< of this host, as clients reach it
  std::vector<std::string> members; ///< users who work with directories that belong to a group
};

/// The host as it was when the plan was made.
struct Look {
  Actual actual;
  Composed composed;
  plan::Plan plan;
  std::string nothing; ///< said if the plan is empty
  Diagnoses found;     ///< and reported
};

/// Reads the host, and works out what to do, into `look`. Called again when another run has changed the host meanwhile:
/// then names are not looked up again, and what was reported before is not reported again. An error if there are
/// errors among what it reports; then nothing is to be changed.
Result<void> propose(sys::System& system, const Task& task, Look& look, const plan::Say& say);

/// Is exported what was expected? By etab, and over the network, where a server that was just started gets a moment.
Result<Diagnoses> verify(sys::System& system, const Task& task, const Look& look, const plan::Say& say);

/// Exports files to check.
struct CheckRequest {
  std::vector<std::string> names; ///< in the order in which exportfs reads them, "-" for the standard input; none:
                                  ///< those of the host, against its directories and names
  std::string directory; ///< where relative names begin
  std::string standard_input;
  bool against_host = false; ///< named files, too
};
/// The files, what exportfs makes of them, and what is to be said about them.
struct Checked {
  HostFiles host;
  ExpectedEtab expected;
  Diagnoses found;
};
/// Errors are those of files that were named and cannot be read.
Result<Checked> check(sys::System& system, const CheckRequest& request, const plan::Say& say);

} // namespace sharefs::exports

#pragma once
// What nodes get so that ssh lets this user in, and what this machine gets for it: the work of `nodes trust`.
#include "fleet/reach.hpp"
#include "fleet/trust.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace sharefs::fleet {

/// One thing that ssh needs on nodes. Files are absolute paths.
struct Granting {
  Grant grant = Grant::key;
  std::string ca = {};            ///< of hosts and users: the file of the authority's private key
  std::vector<Reached> mesh = {}; ///< the nodes whose host keys the others shall know
  std::string mark = {};          ///< of the lines that it adds
  std::string password = {};      ///< a file, for nodes that let nothing else in; empty: none
};
/// Asks or changes the nodes; whatever lets this user in is used. Nodes lie in the state `pending` where a look finds
/// something to do.
Result<std::vector<Outcome>> grant_on_nodes(const Trust& trust, const std::vector<Reached>& nodes,
                                            const Granting& granting, GrantWork work);
/// The step of a plan by which the nodes get it, and its way back: `sharefs nodes grant`, with these further options.
plan::RunTool grant_step(const Trust& trust, const std::vector<Reached>& nodes, const Granting& granting,
                         const Argv& options);
/// The directory where the process of `nodes grant --record MARK` leaves its answers.
std::string record_of_grant(const Trust& trust, const std::string& mark);
/// These answers, which are not needed any more then.
Result<std::vector<Outcome>> take_record(const Trust& trust, const std::string& mark);

/// Writes a certificate of the authority `ca` beside the user's key, where ssh finds it, for the accounts that ssh logs
/// in to, unless there is one that is still valid. `valid`: how long, as parse_duration() reads it.
Result<plan::Plan> plan_certificate(const Trust& trust, const std::string& ca, const std::string& valid);

} // namespace sharefs::fleet

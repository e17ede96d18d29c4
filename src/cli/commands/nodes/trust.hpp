#pragma once
// Private to `nodes trust` and `nodes grant`: what is known of the nodes while it goes on, and what is shared.
#include "cli/execute.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/host_keys.hpp"
#include "fleet/trust.hpp"

#include <map>
#include <string>
#include <vector>

namespace sharefs::cli {

/// The nodes, how ssh reaches them, and what became of each so far.
struct Trust {
  std::vector<fleet::Reached> nodes;
  std::string key;                                ///< file of the private key that nodes shall let in; empty: none
  std::string public_key;                         ///< its one line
  std::map<std::string, fleet::Outcome> outcomes; ///< by node

  /// Those in this state.
  [[nodiscard]] std::vector<fleet::Reached> in(fleet::State state) const;
  /// Those that ssh gets into.
  [[nodiscard]] std::vector<fleet::Reached> open() const;
  void note(const std::vector<fleet::Outcome>& newer);
};

/// How ssh reaches these nodes, and the key that they shall let in: `--key`, or the first of ssh's that is there.
Result<Trust> begin_trust(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes);
/// "gpu[01-64],storage1"
std::string folded(const std::vector<fleet::Reached>& nodes);
/// The nodes of these outcomes.
std::vector<fleet::Reached> those_of(const std::vector<fleet::Reached>& nodes,
                                     const std::vector<fleet::Outcome>& outcomes);

/// A program of this machine, which must succeed: its output.
Result<std::string> output_of(Context& context, const Argv& argv, const std::string& input = {});
/// A path that a person gave, with the home in place of `~`.
std::string given_path(Context& context, const std::string& path);
/// The content of KEY.pub, its one line. Error `not_found`: `what` is the sentence that says how to make it.
Result<std::string> public_key_of(Context& context, const std::string& key, const std::string& what);
/// "SHA256:..." of a public key's file.
Result<std::string> fingerprint_of(Context& context, const std::string& file);

/// A script by ssh on nodes whose host keys are known, each with its own input; with the one key, unless the request
/// says otherwise.
Result<std::vector<fleet::Outcome>> run_there(Context& context, const Arguments& arguments, const Trust& trust,
                                              const std::vector<fleet::Reached>& nodes, fleet::Request request,
                                              const std::string& what);
/// Asks ssh for each of these nodes whether it gets in with the one key.
Result<std::vector<fleet::Outcome>> try_login(Context& context, const Arguments& arguments, const Trust& trust,
                                              const std::vector<fleet::Reached>& nodes);

/// Of nodes that ssh does not know the keys are shown, and written into known_hosts where the person accepts them; with
/// a line for the authority `ca`, the file of its private key, where it is not empty. A number: the command ends here.
Result<std::optional<int>> accept_host_keys(Context& context, const Arguments& arguments, Trust& trust,
                                            const std::string& ca);
/// The lines of this machine's files of known hosts that are about the node, names hashed or not (ssh-keygen -F).
Result<std::vector<std::string>> known_host_lines(Context& context, const fleet::Reached& reached);

/// Writes a certificate of the authority `ca` beside the user's key, where ssh finds it, for the accounts that ssh logs
/// in to, unless there is one that is still valid.
Result<plan::Plan> plan_certificate(Context& context, const Arguments& arguments, const Trust& trust,
                                    const std::string& ca);

/// One thing that ssh needs on nodes.
struct Granting {
  fleet::Grant grant;
  std::string ca;                           ///< of hosts and users: the file of the authority's private key
  std::vector<fleet::Reached> mesh = {};    ///< the nodes whose host keys the others shall know
  std::string mark = {};                    ///< of the lines that it adds
  std::optional<std::string> password = {}; ///< a file, for nodes that let nothing else in
};
/// Asks or changes the nodes; whatever lets this user in is used. Nodes lie in the state `pending` where a look finds
/// something to do.
Result<std::vector<fleet::Outcome>> grant_on_nodes(Context& context, const Arguments& arguments, const Trust& trust,
                                                   const std::vector<fleet::Reached>& nodes, const Granting& granting,
                                                   fleet::GrantWork work);
/// Where the process of `nodes grant --record NAME` leaves its answers.
Result<std::string> record_of_grant(Context& context, const std::string& name);

} // namespace sharefs::cli

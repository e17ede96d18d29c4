#pragma once
// Reaching nodes with this machine's ssh: with which key, which host keys are accepted, and the outcome of each node
// during `nodes trust`.
#include "fleet/host_keys.hpp"
#include "fleet/run.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sharefs::fleet {

/// The time for ssh to connect. It is long, because a slow node must not be taken for one that is off: a node that is
/// not reached gets no trust.
inline constexpr std::chrono::seconds k_first_contact{15};

/// Runs a program on this machine and returns its output. Error `failed` if it does not succeed.
Result<std::string> output_of(sys::System& system, const Argv& argv, const std::string& input = {});
/// Returns the one line of KEY.pub. Error `not_found` if there is none, with a hint how to make `what`.
Result<std::string> read_public_key(sys::System& system, const std::string& key, const std::string& what = "one");
/// Returns the fingerprint "SHA256:..." of a public key's file.
Result<std::string> fingerprint_of(sys::System& system, const std::string& file);

/// Returns the options of ssh for the address and user of a node, followed by its name.
Argv ssh_words(const Node& node);
/// Finds out how ssh reaches each of these nodes (`ssh -G`).
Result<std::vector<Reached>> read_ssh_settings(sys::System& system, const std::vector<Node>& nodes);
/// Returns the nodes whose outcome has this state.
std::vector<Reached> nodes_in_state(State state, const std::vector<Reached>& nodes,
                                    const std::vector<Outcome>& outcomes);
/// Returns "gpu[01-64],storage1".
std::string folded(const std::vector<Reached>& nodes);

/// The state of `nodes trust`: the nodes, the user's key that they shall accept, and the outcome of each node so far.
struct Trust {
  sys::System& system;
  std::string directory; ///< for temporary files, which only this user can read
  /// Runs a script on nodes; `what` is the text of the progress line. Error `interrupted`.
  std::function<Result<std::vector<Outcome>>(const std::vector<Node>& nodes, Request request, const std::string& what)>
      run;
  std::vector<Reached> nodes = {};
  /// File of the private key that nodes shall accept, of the first node that has one (Reached::key); empty: there is
  /// none.
  std::string key = {};
  std::string public_key = {};                  ///< the one line of the public key's file
  std::map<std::string, Outcome> outcomes = {}; ///< by node

  /// Finds out how ssh reaches the nodes, and which key to use for each: `given`, or the first existing one of ssh's.
  Result<void> begin(const std::vector<Node>& named, const std::string& given);
  /// Returns the nodes whose outcome has this state.
  [[nodiscard]] std::vector<Reached> in(State state) const;
  /// Returns the nodes that ssh can log in to.
  [[nodiscard]] std::vector<Reached> nodes_with_login() const;
  /// Replaces the outcomes of these nodes.
  void note(const std::vector<Outcome>& newer);

  /// Runs a script by ssh on nodes whose host keys are known, each with its own input.
  [[nodiscard]] Result<std::vector<Outcome>> run_on(const std::vector<Reached>& there, Request request,
                                                    const std::string& what) const;
  /// Tries to log in to each of these nodes with its one key, and notes the outcome. A node that denied the login
  /// before gets the state `changed`, with the reason `changed`; if that is empty nothing was changed.
  Result<void> try_login(const std::vector<Reached>& there, const std::string& changed = {});
  /// Lets each node that ssh can log in to log in to the next one, and notes the failures. To try all pairs would take
  /// as many logins as there are pairs.
  Result<void> try_mesh();
  /// Explains for each node that accepts no key of this user what has to be done there.
  void explain_denied();
};

/// Returns the lines for the node in this machine's known_hosts files, with plain or hashed names (ssh-keygen -F).
Result<std::vector<std::string>> known_host_lines(sys::System& system, const Reached& reached);

/// Returns the nodes in the state `host_key` for which no key is known, with the keys that they offer. A node for which
/// another key is known is noted in `trust`.
Result<std::vector<Reached>> find_host_keys(Trust& trust);

/// Which host keys are accepted.
struct Acceptance {
  bool all = false;      ///< every key that is offered
  std::string list = {}; ///< a file with fingerprints; only these keys are accepted; empty: none
};
/// Returns the accepted nodes, each with its accepted keys only, and sets their state to `pending`. The reason why
/// another node is not accepted is noted in `trust`.
Result<std::vector<Reached>> accept_keys(Trust& trust, std::vector<Reached> unknown, const Acceptance& acceptance);

/// Plans the new lines of known_hosts. `authority` is the line of an authority's public key, which is added too; empty:
/// none.
Result<plan::Plan> plan_known_hosts(const Trust& trust, const std::vector<Reached>& accepted,
                                    const std::string& authority, bool for_all_users);

} // namespace sharefs::fleet

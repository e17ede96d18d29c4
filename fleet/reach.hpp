#pragma once
// How this machine's ssh reaches nodes, with which key, and what became of each of them while `nodes trust` goes on.
#include "fleet/host_keys.hpp"
#include "fleet/run.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sharefs::fleet {

/// For ssh to get through. A slow node is not to be taken for one that is off: what is not reached stays without trust.
inline constexpr std::chrono::seconds k_first_contact{15};

/// A program of this machine, which must succeed: its output.
Result<std::string> output_of(sys::System& system, const Argv& argv, const std::string& input = {});
/// The content of KEY.pub, its one line. Error `not_found` if there is none; its hint says how to make `what`.
Result<std::string> read_public_key(sys::System& system, const std::string& key, const std::string& what = "one");
/// "SHA256:..." of a public key's file.
Result<std::string> fingerprint_of(sys::System& system, const std::string& file);

/// The options of ssh for the address and user of a node, and its name behind them.
Argv ssh_words(const Node& node);
/// How ssh reaches each of these nodes, by its own word.
Result<std::vector<Reached>> reach(sys::System& system, const std::vector<Node>& nodes);
/// The nodes of those outcomes that have this state.
std::vector<Reached> those_in(State state, const std::vector<Reached>& nodes, const std::vector<Outcome>& outcomes);
/// "gpu[01-64],storage1"
std::string folded(const std::vector<Reached>& nodes);

/// The nodes, the key that they shall let in, and what became of each so far.
struct Trust {
  sys::System& system;
  std::string directory; ///< for files of this user alone, while it goes on
  /// Runs a script of ours on nodes; `what` is said meanwhile. Error `interrupted`.
  std::function<Result<std::vector<Outcome>>(const std::vector<Node>& nodes, Request request, const std::string& what)>
      run;
  std::vector<Reached> nodes = {};
  std::string key = {};                         ///< file of the private key; empty: none
  std::string public_key = {};                  ///< its one line
  std::map<std::string, Outcome> outcomes = {}; ///< by node

  /// Finds out how ssh reaches the nodes, and the key: `given`, or the first of ssh's that is there.
  Result<void> begin(const std::vector<Node>& named, const std::string& given);
  [[nodiscard]] std::vector<Reached> in(State state) const;
  /// Those that ssh gets into.
  [[nodiscard]] std::vector<Reached> open() const;
  void note(const std::vector<Outcome>& newer);

  /// A script by ssh on nodes whose host keys are known, each with its own input; with the one key, unless the request
  /// says otherwise.
  [[nodiscard]] Result<std::vector<Outcome>> run_there(const std::vector<Reached>& there, Request request,
                                                       const std::string& what) const;
  /// Notes for each of these nodes whether ssh gets in with the one key. What was denied before and is `ok` now was
  /// changed, for which `changed` is the reason; empty: nothing was.
  Result<void> try_login(const std::vector<Reached>& there, const std::string& changed = {});
  /// From each node that ssh gets into to the next one, and notes where that fails: that all pairs can would take as
  /// many logins as there are pairs.
  Result<void> try_mesh();
  /// Of nodes that let this user in by no key: what is to be done there.
  void explain_denied();
};

} // namespace sharefs::fleet

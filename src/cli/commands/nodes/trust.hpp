#pragma once
// Private to `nodes trust`: what is known of the nodes while it goes on, and its stages.
#include "cli/on_nodes.hpp"
#include "fleet/host_keys.hpp"

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

/// A program of this machine, which must succeed: its output.
Result<std::string> output_of(Context& context, const Argv& argv, const std::string& input = {});
/// Reads a file of this user; empty where there is none.
Result<std::string> file_text(Context& context, const std::string& path);
/// The lines of this machine's files of known hosts that are about the node, names hashed or not (ssh-keygen -F).
Result<std::vector<std::string>> known_host_lines(Context& context, const fleet::Reached& reached);
/// With the home in place of `~`.
std::string expand_home(Context& context, const std::string& path);

/// A script by ssh on nodes whose host keys are known, each with its own input; with the one key, unless the request
/// says otherwise.
Result<std::vector<fleet::Outcome>> run_there(Context& context, const Arguments& arguments, const Trust& trust,
                                              const std::vector<fleet::Reached>& nodes, fleet::Request request,
                                              const std::string& what);
/// Asks ssh for each of these nodes whether it gets in with the one key.
Result<std::vector<fleet::Outcome>> try_login(Context& context, const Arguments& arguments, const Trust& trust,
                                              const std::vector<fleet::Reached>& nodes);

/// The key comes to nodes that do not let this user in with it, by whatever lets him in: another key, an agent, a
/// password.
Result<void> bring_key(Context& context, const Arguments& arguments, Trust& trust);
/// Host keys get certificates of the authority `ca`, the file of its private key.
Result<void> certify_hosts(Context& context, const Arguments& arguments, Trust& trust, const std::string& ca);
/// Every node knows the host keys of all, and each gets into the next one.
Result<void> make_mesh(Context& context, const Arguments& arguments, Trust& trust);

} // namespace sharefs::cli

#pragma once
// What nodes need so that ssh lets this user in, and what this machine needs for it: the work of `nodes trust`.
#include "fleet/reach.hpp"
#include "plan/plan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

enum class Grant {
  key,   ///< the user's public key in authorized_keys there; stdin has "TYPE KEY"
  hosts, ///< an authority's certificates for sshd's host keys; stdin has the fingerprint, or "PATH CERTIFICATE" lines
  users, ///< an authority whose user certificates sshd accepts; stdin has "TYPE KEY"
  mesh,  ///< host keys of all nodes in /etc/ssh/ssh_known_hosts; stdin has these lines
};
/// "key", "hosts", "users", "mesh".
const char* to_string(Grant grant);
std::optional<Grant> grant_from(std::string_view text);

enum class GrantWork {
  check,  ///< reports `pending` where something is missing
  add,    ///< adds what is missing: lines get the mark at their end
  remove, ///< removes the lines with this mark; certificates together with their entry in sshd_config.d
};
/// `mark` has letters and digits only. `comment` stands before it in a new line. All grants but `key` need root.
std::string grant_script(Grant grant, GrantWork work, const std::string& mark, const std::string& comment);

/// A host key of a node, as the check of Grant::hosts reports it.
struct OwnHostKey {
  std::string path;       ///< path of the public key there
  std::string public_key; ///< "ssh-ed25519 AAAA..."
  friend bool operator==(const OwnHostKey&, const OwnHostKey&) = default;
};
/// Reads the output of that check.
std::vector<OwnHostKey> parse_own_host_keys(std::string_view out);

/// One thing that ssh needs on the nodes. Files are absolute paths.
struct Granting {
  Grant grant = Grant::key;
  std::string ca = {};            ///< for Grant::hosts and Grant::users: the file of the authority's private key
  std::vector<Reached> mesh = {}; ///< the nodes whose host keys the other nodes shall know
  std::string mark = {};          ///< ends each line that is added
  std::string password = {};      ///< a file with a password, for nodes that accept no other login; empty: none
};
/// Checks or changes the nodes, over any login that works for this user. A check sets the state `pending` for a node
/// where there is something to do.
Result<std::vector<Outcome>> grant_on_nodes(const Trust& trust, const std::vector<Reached>& nodes,
                                            const Granting& granting, GrantWork work);
/// Returns the step of a plan that grants it to the nodes: `sharefs nodes grant` with these further options, and the
/// same with --remove as its undo.
plan::RunTool grant_step(const Trust& trust, const std::vector<Reached>& nodes, const Granting& granting,
                         const Argv& options);
/// Returns the directory in which the process of `nodes grant --record MARK` writes its outcomes.
std::string record_of_grant(const Trust& trust, const std::string& mark);
/// Reads these outcomes and removes the directory.
Result<std::vector<Outcome>> take_record(const Trust& trust, const std::string& mark);

/// Plans a certificate of the authority `ca` beside the user's key, where ssh finds it, for the accounts that ssh logs
/// in to. The plan is empty if there is one that is still valid. `valid` is its life time, as parse_duration() reads
/// it.
Result<plan::Plan> plan_certificate(const Trust& trust, const std::string& ca, const std::string& valid);

} // namespace sharefs::fleet

#pragma once
// Scripts for a node's own shell that give ssh, and launchers that go from node to node, what they need to log in.
#include "fleet/script.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// Returns a script that does nothing: it succeeds if ssh lets this user in.
std::string login_script();

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

/// Returns a script that logs in, as the user, from its node to the node that it reads from stdin.
std::string next_node_script();

} // namespace sharefs::fleet

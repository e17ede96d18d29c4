#pragma once
// What nodes need so that ssh, and launchers that go from node to node, get in: scripts of the node's own shell.
#include "fleet/script.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// Nothing: whoever comes through to it is let in.
std::string login_script();

enum class Grant {
  key,   ///< the user's public key in authorized_keys there; the script reads "TYPE KEY"
  hosts, ///< certificates of an authority for sshd's host keys; it reads the fingerprint, or "PATH CERTIFICATE" lines
  users, ///< an authority whose user certificates sshd believes; it reads "TYPE KEY"
  mesh,  ///< host keys of all nodes in /etc/ssh/ssh_known_hosts; it reads these lines
};
/// "key", "hosts", "users", "mesh".
const char* to_string(Grant grant);
std::optional<Grant> grant_from(std::string_view text);

enum class GrantWork {
  look,   ///< says `pending` where something is missing
  add,    ///< adds what is missing: lines get the mark at their end
  remove, ///< takes the lines with this mark away again; certificates with their entry in sshd_config.d
};
/// `mark`: letters and digits. `comment`: what stands before it in a new line. All but `key` need root.
std::string grant_script(Grant grant, GrantWork work, const std::string& mark, const std::string& comment);

/// A host key of a node, by the look of Grant::hosts.
struct OwnHostKey {
  std::string path;       ///< of the public key there
  std::string public_key; ///< "ssh-ed25519 AAAA..."
  friend bool operator==(const OwnHostKey&, const OwnHostKey&) = default;
};
std::vector<OwnHostKey> parse_own_host_keys(std::string_view out);

/// Logs in at the node that it reads, as the user: from a node to another one.
std::string next_node_script();

} // namespace sharefs::fleet

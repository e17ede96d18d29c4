#pragma once
// What nodes need so that ssh, and launchers that go from node to node, get in: scripts of the node's own shell.
#include "fleet/script.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// Nothing: whoever comes through to it is let in.
std::string login_script();
/// Puts the public key that it reads into the user's authorized_keys, once.
std::string add_key_script();

/// Says of each host key of sshd there whether it has a certificate of the authority with this fingerprint: needs root.
std::string host_keys_script(const std::string& authority_fingerprint);
/// A host key of a node, by that script.
struct OwnHostKey {
  std::string path;       ///< of the public key there
  std::string public_key; ///< "ssh-ed25519 AAAA..."
  bool certified = false;
  friend bool operator==(const OwnHostKey&, const OwnHostKey&) = default;
};
/// nullopt: it did not come to its end.
std::optional<std::vector<OwnHostKey>> parse_own_host_keys(std::string_view out);
/// Puts certificates that it reads, "PATH CERTIFICATE" in each line, beside the host keys, and lets sshd show them; by
/// a file of its own in sshd_config.d, which goes again where `sshd -t` does not take it. Needs root.
std::string certify_script();

/// Puts lines that it reads into /etc/ssh/ssh_known_hosts, once; with `check` it says `missing` where there is
/// something to do. Needs root.
std::string known_hosts_script(bool check);
/// Logs in at the node that it reads, as the user: from a node to another one.
std::string next_node_script();

} // namespace sharefs::fleet

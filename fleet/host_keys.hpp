#pragma once
// Host keys of nodes: what OpenSSH's own programs say of them, and what is written into known_hosts.
#include "base/result.hpp"
#include "fleet/node.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// How ssh reaches a node, by its own word.
struct SshSettings {
  std::string host, port, user, host_key_alias, proxy_jump, proxy_command;
  std::vector<std::string> identity_files, user_known_hosts, global_known_hosts; ///< absolute

  /// Under which ssh looks for the host key: "gpu01", "[gpu01]:2222", or the alias.
  [[nodiscard]] std::string known_name() const;
  /// The same for another name of the machine.
  [[nodiscard]] std::string with_port(const std::string& name) const;
};
/// The output of `ssh -G`; `home` stands for `~`.
SshSettings parse_ssh_settings(std::string_view text, const std::string& home);

struct HostKey {
  std::string type, key;   ///< "ssh-ed25519", base64
  std::string fingerprint; ///< "SHA256:..."; empty until it is asked for
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// A node and what was found out about it.
struct Reached {
  Node node;
  SshSettings ssh;
  std::vector<HostKey> keys; ///< that it offers
};

/// ssh_config(5) with which ssh reaches these nodes and uses no other key than this file's; empty: any of ssh's.
std::string ssh_config_with_key(const std::vector<Reached>& nodes, const std::string& key);

/// The output of `ssh-keyscan`: keys by the name that was asked for, in the order of their types' strength.
std::map<std::string, std::vector<HostKey>> parse_keyscan(std::string_view out);

/// "HOST TYPE KEY" in each line, for `ssh-keygen -lf -`.
std::string known_hosts_lines(const std::vector<Reached>& nodes);
/// The fingerprints that it printed, into the same keys. Error `failed` if they are not as many.
Result<void> read_fingerprints(std::string_view out, std::vector<Reached>& nodes);

/// The fingerprints of a file that was put together on the nodes' consoles: a line with the name of a node (also as
/// `root@NODE` or `NODE:`) and SHA256:... is one of its keys.
std::map<std::string, std::set<std::string>> parse_fingerprint_list(std::string_view text,
                                                                    const std::vector<Reached>& nodes);

/// The lines for known_hosts behind what is in the file already.
std::string with_host_keys(const std::string& before, const std::vector<Reached>& accepted);
/// The line by which all certificates of an authority for these nodes are believed, in place of an earlier one.
std::string with_authority(const std::string& before, const std::vector<Reached>& nodes, const std::string& public_key);
/// All names under which ssh may ask for a node: its name, its address, its alias.
std::vector<std::string> names_of(const Reached& reached);

} // namespace sharefs::fleet

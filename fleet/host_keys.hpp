#pragma once
// Host keys of nodes: the output of OpenSSH's programs about them, and the lines of known_hosts.
#include "base/result.hpp"
#include "fleet/node.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// How ssh reaches a node, as `ssh -G` prints it.
struct SshSettings {
  std::string host, port, user, host_key_alias, proxy_jump, proxy_command;
  std::vector<std::string> identity_files, user_known_hosts, global_known_hosts; ///< absolute
  std::vector<std::string> kept = {}; ///< lines of ssh_config(5) about algorithms and certificates

  /// Returns the name under which ssh looks up the host key: "gpu01", "[gpu01]:2222", or the alias.
  [[nodiscard]] std::string known_name() const;
  /// Returns that name for another name of the machine.
  [[nodiscard]] std::string with_port(const std::string& name) const;
};
/// Reads the output of `ssh -G`; `home` replaces `~`. SshSettings::kept gets no line that is among the `defaults`,
/// because ssh prefers host keys that it knows only where nothing is said about their algorithms.
SshSettings parse_ssh_settings(std::string_view text, const std::string& home, std::string_view defaults = {});

struct HostKey {
  std::string type, key;   ///< "ssh-ed25519", base64
  std::string fingerprint; ///< "SHA256:..."; empty until read_fingerprints() fills it in
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// A node, and how ssh reaches it.
struct Reached {
  Node node;
  SshSettings ssh;
  std::vector<HostKey> keys; ///< the keys that the node offers
  std::string key = {};      ///< file of the private key of this user for it; empty: there is none
};

/// Returns an ssh_config(5) for these nodes that uses only Reached::key; any key of ssh's for a node without one. ssh's
/// own files are not included, because each of their keys would be tried, too.
std::string ssh_config_with_key(const std::vector<Reached>& nodes);

/// Reads the output of `ssh-keyscan`. Returns the keys by the name that was asked for, the strongest type first.
std::map<std::string, std::vector<HostKey>> parse_keyscan(std::string_view out);

/// Returns "HOST TYPE KEY" lines, as `ssh-keygen -lf -` reads them.
std::string known_hosts_lines(const std::vector<Reached>& nodes);
/// Puts the fingerprints that ssh-keygen printed into the same keys. Error `failed` if their numbers differ.
Result<void> read_fingerprints(std::string_view out, std::vector<Reached>& nodes);

/// Reads a file of fingerprints that was written down on the nodes' consoles: a line with the name of a node (also as
/// `root@NODE` or `NODE:`) and SHA256:... names one of its keys. The comment behind the fingerprint counts only if
/// nothing but the length of the key stands in front of it. Error `config` for a line that names two nodes.
Result<std::map<std::string, std::set<std::string>>> parse_fingerprint_list(std::string_view text,
                                                                            const std::vector<Reached>& nodes);

/// Returns the content of known_hosts with the lines of these nodes appended.
std::string with_host_keys(const std::string& before, const std::vector<Reached>& accepted);
/// Returns the content of known_hosts with one line that accepts all certificates of an authority for these nodes; it
/// replaces an earlier line of that authority.
std::string with_authority(const std::string& before, const std::vector<Reached>& nodes, const std::string& public_key);
/// Returns all names under which ssh may look up a node: its name, its address, its alias.
std::vector<std::string> names_of(const Reached& reached);

} // namespace sharefs::fleet

#pragma once
// sharefs and sharefs.yaml on other nodes, also where there is none yet: a script of the node's own shell says what is
// there, and another one puts what is sent beside its place, tries it, and only then lets it take the place.
#include "fleet/outcome.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sharefs::fleet {

/// What a node has of it; sums are sha256 in hexadecimal, and empty for what is not there.
struct Installed {
  std::string machine; ///< uname -m
  std::string program; ///< the path of the one that PATH finds there
  std::string program_sum;
  std::string guard_sum;  ///< of all files of PREFIX/share/sharefs
  std::string config_sum; ///< of /etc/sharefs/sharefs.yaml
  std::string package;    ///< the version of the package that the program belongs to
  bool config_is_link = false;
  friend bool operator==(const Installed&, const Installed&) = default;
};

/// What is brought.
struct PushContent {
  Installed here;                    ///< of this machine
  std::string version;               ///< what `sharefs --version` prints
  std::string prefix = "/usr/local"; ///< where a node gets it that has none
  std::string package = {};          ///< the version of a Debian package in place of the program; empty: the program
};

/// Prints what is installed. Empty: as PATH finds the program, and the guard beside it.
std::string installed_script(const std::string& prefix, const std::string& program = {}, const std::string& guard = {},
                             const std::string& config = "/etc/sharefs/sharefs.yaml");
/// nullopt: the script did not come to its end.
std::optional<Installed> parse_installed(std::string_view out);

/// What is to be done on a node, as the answer to `--check` has it: ok, pending with its steps, or failed where it
/// must not be done.
Outcome plan_push(const Node& node, const PushContent& content, const Installed& there);

/// Reads a tar archive with `sharefs` or `sharefs.deb`, `share` and `sharefs.yaml`, and puts in its place what differs:
/// each file is written as NAME.new, tried (`--version`, `config check`), and renamed, with the old one as NAME.old.
/// One that does not hold leaves all as it was. With $1, as every script of a node.
std::string install_script(const PushContent& content);

} // namespace sharefs::fleet

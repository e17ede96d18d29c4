#pragma once
// Pushing sharefs and sharefs.yaml to other nodes, with or without a sharefs there. One shell script reports what is
// installed. Another one writes the new files beside the old ones, tries them, and only then renames them into place.
#include "fleet/outcome.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sharefs::fleet {

/// What is installed on a node. Sums are sha256 in hexadecimal, and empty for a file that does not exist.
struct Installed {
  std::string machine; ///< as `uname -m` prints it
  std::string program; ///< path of the sharefs that PATH finds there
  std::string program_sum;
  std::string guard_sum;  ///< over all files of PREFIX/share/sharefs
  std::string config_sum; ///< of /etc/sharefs/sharefs.yaml
  std::string package;    ///< version of the package that the program belongs to
  bool config_is_link = false;
  friend bool operator==(const Installed&, const Installed&) = default;
};

/// What a push installs.
struct PushContent {
  Installed here;                    ///< what this machine has
  std::string version;               ///< what `sharefs --version` prints
  std::string prefix = "/usr/local"; ///< where the program goes on a node that has none
  std::string package = {};          ///< version of the Debian package to install; empty: install the program
};

/// Returns a script that prints what is installed. Where `program` is empty it uses the program that PATH finds, and
/// the guard beside it.
std::string installed_script(const std::string& prefix, const std::string& program = {}, const std::string& guard = {},
                             const std::string& config = "/etc/sharefs/sharefs.yaml");
/// Reads the output of that script; nullopt if the script did not reach its end.
std::optional<Installed> parse_installed(std::string_view out);

/// Decides what a push has to do on a node, in the form of an answer to `--check`: ok, pending with its steps, or
/// failed where the push is refused.
Outcome plan_push(const Node& node, const PushContent& content, const Installed& there);

/// Says whether a node of which `plan_push` said this gets more than sharefs.yaml.
bool sends_program(const Outcome& planned);

/// Returns a script that reads a tar archive with `sharefs.yaml` and, where a node gets more, `sharefs` and `share` or
/// `sharefs.deb`, and installs the parts that differ. Each file is written as NAME.new, tried (`--version`, `config check`), and renamed; the old
/// one is kept as NAME.old. If a file fails its trial nothing is changed. As for every script of a node, $1 is the
/// node's name.
std::string install_script(const PushContent& content);

} // namespace sharefs::fleet

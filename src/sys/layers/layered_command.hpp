#pragma once
// A command that sees one entry of a directory as a tree that it may change, while nothing of what lies there changes:
// overlayfs in a mount namespace of its own. What it did is what the upper directory holds afterwards
// (tree::Options::layer).
#include "base/argv.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace sharefs::sys {

struct TerminalCommand {
  Argv argv;                            ///< argv[0] is found in the PATH of `environment`
  std::vector<std::string> environment; ///< complete, NAME=value
  std::string directory;                ///< working directory
  bool output_to_stderr = false;        ///< on standard output comes something else
};

struct Layers {
  std::string parent, name; ///< what is seen at PARENT/NAME is the layered tree; the rest of PARENT is as it was
  std::string lower;        ///< the tree below, which is only read
  std::string upper, work;  ///< empty directories on one file system of this host
  std::vector<std::string> removed;  ///< below the tree: not there for the command
  std::vector<std::string> writable; ///< below the tree: directories whose files get the owner's right to write, too
  int user_namespace =
      -1; ///< of this user, with all groups (make_user_namespace()); -1: one with a single group is made
};

/// Runs it to its end, with our terminal and Ctrl-C; its exit code, 128 + n for signal n. Errors: `not_found`,
/// `permission`: the command cannot be executed; `interrupted`: it did not end after Ctrl-C.
Result<int> run_in_terminal(const TerminalCommand& command);
/// The same in the view of `layers`. Who is not root does it in a
/// user namespace, as himself, and neither the mounts nor the command have a right there over what is not his.
/// Directories of the tree get their owner's right to write. `unsupported`: this host or file system has no such mounts
/// for this user.
Result<int> run_layered(const TerminalCommand& command, const Layers& layers);

} // namespace sharefs::sys

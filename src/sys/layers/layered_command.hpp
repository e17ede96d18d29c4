#pragma once
// Runs a command that may change a directory tree without changing the original: it sees an overlayfs in its own mount
// namespace. Afterwards the upper directory contains its changes (tree::Options::layer).
#include "base/argv.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace sharefs::sys {

struct TerminalCommand {
  Argv argv;                            ///< argv[0] is found in the PATH of `environment`
  std::vector<std::string> environment; ///< complete, NAME=value
  std::string directory;                ///< working directory
  bool output_to_stderr = false;        ///< standard output is needed for something else
};

struct Layers {
  std::string parent, name;          ///< the layered tree is visible at PARENT/NAME; the rest of PARENT is unchanged
  std::string lower;                 ///< the tree below, which is read-only for the command, by whatever path
  std::string upper, work;           ///< empty directories on one file system of this host
  std::vector<std::string> removed;  ///< paths in the tree that are removed for the command
  std::vector<std::string> writable; ///< directories in the tree on whose files the owner gets write permission
  /// A user namespace of this user, with all groups (make_user_namespace()); -1: one with a single group is made.
  int user_namespace = -1;
  std::vector<std::string> read_only = {}; ///< other directories that are read-only for the command
};

/// Runs the command to its end, on our terminal, where it also gets Ctrl-C. Returns its exit code, 128 + n for signal
/// n. Errors: `not_found`, `permission`: the command cannot be executed; `interrupted`: it did not end after Ctrl-C.
/// `layers`: the command runs in this view. For a user other than root this is a user namespace with the same ids, in
/// which neither the mounts nor the command have rights over files of others. The owner gets write permission on the
/// directories of the tree. Error `unsupported`: this host or file system does not allow such mounts for this user.
Result<int> run_in_terminal(const TerminalCommand& command, const Layers* layers = nullptr);

} // namespace sharefs::sys

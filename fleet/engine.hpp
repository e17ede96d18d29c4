#pragma once
// Engines: programs of others that reach many nodes, each a row of a table. An engine starts the same small script once
// per node, a limited number at a time. The script runs ssh and writes its two streams and its exit code to files of
// that node, so that an engine cannot mix, label or cut the lines. Only srun starts the command itself.
#include "base/argv.hpp"
#include "base/result.hpp"
#include "fleet/node.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// One batch of a run, as an engine gets it.
struct Fanout {
  std::string names;       ///< file with one node name per line
  std::string script;      ///< file of the script, which gets a node's name as its argument
  std::string here;        ///< for srun: the command line that runs on each node, for a POSIX shell
  unsigned at_a_time = 64; ///< how many nodes at the same time
  std::size_t nodes = 0;
};

struct Engine {
  std::string_view name;  ///< the value of `--engine`, and its program, which must be installed
  std::string_view words; ///< the arguments of the program; `{names}` and so on are fields of Fanout
  /// The engine's own output has the output of all nodes, in frames; there is no ssh and no file per node.
  bool joins_streams = false;
};
Argv argv_of(const Engine& engine, const Fanout& fanout);

/// Returns the engine that was asked for, or the first that is installed. srun is chosen only by `--engine`, inside an
/// allocation of Slurm too, because its steps run as the user. Errors: `usage` for an unknown engine, `not_found` if it
/// is not installed. Programs are searched for in `path`.
Result<const Engine*> choose_engine(sys::System& system, std::string_view wanted, const std::string& path);

/// Returns the directories of the caller's PATH in which engines and ssh may be found: for root only directories that
/// nobody else can write to or replace. It is never empty, because the system's own directories are appended.
std::string path_for_engines(sys::System& system, const std::string& path);

/// Returns the options of ssh for each connection to a node: nothing is asked for at the terminal, nothing is
/// forwarded, no command of the site's is run instead, and a node that has gone is noticed.
Argv ssh_options(std::chrono::seconds connect);

/// How a node is asked to run a command.
struct Asking {
  Argv words = {};                    ///< the arguments of sharefs: "mount --all --json --yes"
  std::string program = {};           ///< path of sharefs on this machine
  std::vector<std::string> here = {}; ///< names of nodes that are this machine; they need no ssh
  bool as_root = false;               ///< by `sudo -n` where the login user is not root
  /// The command runs on this machine, once for each node. It gets `--node NAME` and `--rsh TEXT`, the command line of
  /// ssh for that node (rsync -e), behind its arguments.
  bool from_here = false;
  /// A shell script that runs there instead of sharefs and its arguments; $1 is the node's name.
  std::string script = {};
  std::string input = {};     ///< a file for the script's stdin; if the run has a file NAME.in, that is used instead
  Argv ssh{"ssh"};            ///< the program, with options that come before all others
  bool always_by_ssh = false; ///< use ssh for this machine, too
  std::chrono::seconds connect{5};   ///< time for ssh to connect
  std::chrono::seconds command{600}; ///< time for the command on the node (timeout(1) there)
  std::string ssh_config = {};       ///< file for ssh -F; empty: ssh's own files
};

/// The output of one node is kept up to this number of bytes.
inline constexpr std::size_t k_output_limit = 32U << 20U;

/// Returns the script for one node, whose name is its argument. It runs in `directory` and writes NAME.out, NAME.err,
/// and at last the exit code to NAME.end. A file NAME.words has further arguments for this node alone. It does nothing
/// if there is no `go`.
std::string node_script(const std::string& directory, const Asking& asking);
/// Returns a command line for the login shell of a node, whatever shell that is. It sets a PATH that has the system's
/// programs and, if `as_root`, uses `sudo -n env` where the login user is not root.
std::string node_line(const Argv& words, bool as_root);
/// Returns the command line of srun's tasks.
std::string task_text(const Asking& asking);
/// Returns an ssh_config(5) for nodes whose address or user differ from ssh's own settings; "" if there are none.
std::string ssh_config_of(const std::vector<Node>& nodes);

} // namespace sharefs::fleet

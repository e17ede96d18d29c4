#pragma once
// What reaches many nodes: programs that others have written, each a row. All of them start the same small script once
// per node, so many at a time, and the script runs ssh and keeps its two streams and its exit code in files of that
// node: nothing is mixed, relabelled or cut, whatever an engine does with lines. srun starts the command itself.
#include "base/argv.hpp"
#include "base/result.hpp"
#include "fleet/node.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// A batch of a run, as an engine is given it.
struct Fanout {
  std::string names;       ///< file with a node's name in each line
  std::string script;      ///< started with a node's name
  std::string here;        ///< for srun: the command line on each node, for a POSIX shell
  unsigned at_a_time = 64; ///< nodes
  std::size_t nodes = 0;
};

struct Engine {
  std::string_view name;    ///< of `--engine`
  std::string_view program; ///< that must be installed
  Argv (*argv)(const Fanout&) = nullptr;
  /// Its tasks' output comes through its own, in frames: there is no ssh, and no file of a node.
  bool joins_streams = false;
};

/// The one that was asked for, or the first that is installed; inside an allocation of Slurm nothing but `--engine`
/// chooses srun, since there steps run as the user. Error `usage` for an unknown one, `not_found` if it is not there.
/// `path` is where programs are looked for.
Result<const Engine*> choose_engine(sys::System& system, std::string_view wanted, const std::string& path);

/// Of the caller's PATH what engines and ssh may be taken from: for root only directories that nobody else can write
/// to or exchange. Never empty: the system's own directories stand last.
std::string path_for_engines(sys::System& system, const std::string& path);

/// How a node is asked.
struct Asking {
  Argv words = {};                    ///< of sharefs: "mount --all --json --yes"
  std::string program = {};           ///< sharefs on this machine
  std::vector<std::string> here = {}; ///< names of nodes that are this machine: no ssh
  bool as_root = false;               ///< by `sudo -n` where the login is not root's
  /// The command runs on this machine, once for each node: `--node NAME --rsh TEXT` behind its words say for which one,
  /// and how ssh is called for it (rsync -e).
  bool from_here = false;
  std::string script = {};           ///< what sh runs there in place of sharefs and its words; $1 is the node's name
  std::string input = {};            ///< a file for the script to read; one NAME.in of the run goes before it
  Argv ssh{"ssh"};                   ///< the program, with options that count before all others
  bool always_by_ssh = false;        ///< this machine, too
  std::chrono::seconds connect{5};   ///< for ssh to get through
  std::chrono::seconds command{600}; ///< for the command to end there: timeout(1) on the node
  std::string ssh_config = {};       ///< file for ssh -F; empty: ssh's own
};

/// What a node says is kept up to so many bytes.
inline constexpr std::size_t k_most_said = 32U << 20U;

/// The script for one node, its argument: runs in `directory`, writes NAME.out and NAME.err and last the exit code into
/// NAME.end. A file NAME.words has further words for this node alone. It does nothing where there is a file `stop`.
std::string node_script(const std::string& directory, const Asking& asking);
/// A command line for the login shell of a node, of any kind: a PATH that finds the system's programs and, if asked
/// for, `sudo -n env` where the login is not root's.
std::string node_line(const Argv& words, bool as_root);
/// The command line that srun's tasks are.
std::string task_text(const Asking& asking);
/// ssh_config(5) for nodes whose address or user are not ssh's own; empty: there are none.
std::string ssh_config_of(const std::vector<Node>& nodes);

} // namespace sharefs::fleet

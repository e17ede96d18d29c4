#pragma once
// The rules that say where a cache goes: the rows of guard/sharefs_guard/caches.txt, and before them the user's own.
#include "cachefix/launchers/walk.hpp"
#include "cachefix/store/local_root.hpp"

namespace sharefs::cachefix {

enum class CacheClass {
  node_local,  ///< one per node: on shared storage the nodes destroy each other's files
  mixed,       ///< datasets, built by the guard, and perhaps models beside them
  read_mostly, ///< written once and read by all nodes: it belongs on shared storage
  shared,      ///< must stay shared: only one rank writes it, or the nodes exchange files by it
  never,       ///< outputs and inputs, which are never moved
};
/// True if caches of this class are moved off shared storage or guarded there.
constexpr bool is_moved(CacheClass value) {
  return value == CacheClass::node_local || value == CacheClass::mixed;
}
const char* to_string(CacheClass value); ///< "node-local", "mixed", "read-mostly", "shared", "never"

/// The rule for one variable, or for one flag of a program.
struct CacheRule {
  std::string name; ///< the variable, or the flag as the rule spells it: "--cache_dir"
  CacheClass cache_class = CacheClass::never;
  std::string reason = {};
  bool by_user = false;      ///< the rule is one of --local, --keep or sharefs.yaml
  std::string of = {};       ///< flags only: the programs for which it counts; empty: all
  std::string fallback = {}; ///< default of a variable, with $NAME and ~; empty: no default, or none that may be shared
  bool holds_code = false;   ///< variables only: programs map the code that they compile there
  std::string id = {};       ///< name of the row
  std::string unless = {};   ///< names of files: a directory with one of them is left
};

/// A rule of the user: sharefs.yaml's caches.rules, --keep and --local.
struct UserRule {
  std::string program; ///< glob for the program's name on the command line, or for its last component; "": all
  std::string flag;    ///< `--cache_dir`, or a variable's name
  bool local = false;  ///< true: rewrite to the node's own disk; false: keep
  std::string origin;  ///< "--keep", "sharefs.yaml:12:5"
};

/// Returns the table's rules for variables, after the user's rules have changed them and added others.
std::vector<CacheRule> variable_rules(const std::vector<UserRule>& user = {});
/// Returns the variables that rules keep for every program, separated by `:`.
std::string kept_variables(const std::vector<UserRule>& rules);

/// Returns the row for a program; nullptr if there is none.
const Row* framework_of(const Program& program, const Argv& argv);

/// Returns the rule for a flag: the user's, else the table's; nullopt if there is none. `flag` is one word of argv up
/// to its `=`. It may have `-` for `_`, or be a prefix long enough that it hardly means another flag.
std::optional<CacheRule> rule_for_flag(const Program& program, const Row* framework, std::string_view flag,
                                       const std::vector<UserRule>& user);
/// True if the name of an option or a variable says that it names a cache.
bool names_cache(std::string_view name);

} // namespace sharefs::cachefix

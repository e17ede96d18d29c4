#pragma once
// Which cache goes where: the rows of guard/sharefs_guard/caches.txt, and the user's own rules, which go before them.
#include "cachefix/launchers/walk.hpp"
#include "cachefix/store/local_root.hpp"

namespace sharefs::cachefix {

enum class CacheClass {
  node_local,  ///< one per node; on shared storage the nodes destroy each other's
  mixed,       ///< datasets, which the guard builds, and perhaps models beside them
  read_mostly, ///< written once, read by all: shared is right
  shared,      ///< must stay shared: only one rank writes it, or nodes exchange it
  never,       ///< outputs and inputs: never touched
};
/// Is what is of this class kept off shared storage, or guarded there?
constexpr bool is_moved(CacheClass value) {
  return value == CacheClass::node_local || value == CacheClass::mixed;
}
const char* to_string(CacheClass value); ///< "node-local", "mixed", "read-mostly", "shared", "never"

/// What is done with one variable, or with one flag of one program.
struct CacheRule {
  std::string name; ///< the flag as the rule spells it: "--cache_dir"
  CacheClass cache_class = CacheClass::never;
  std::string reason = {};
  bool by_user = false;         ///< asked for by --local, --keep or sharefs.yaml
  std::string fallback = {};    ///< of a variable, with $NAME and ~; empty: there is none, or it is not under $HOME
  Holds holds = Holds::data;    ///< of a variable
  std::string id = {};          ///< of a flag: its row
  bool unless_prepared = false; ///< of a flag: left where something lies there already
};

/// A rule of the user: sharefs.yaml's caches.rules, --keep and --local.
struct UserRule {
  std::string program; ///< glob over the program's name as it stands on the command line or its last component; "": all
  std::string flag;    ///< `--cache_dir`, or a variable's name
  bool local = false;  ///< true: rewrite to the node's own disk; false: keep
  std::string origin;  ///< "--keep", "sharefs.yaml:12:5"
};

/// The table's rules for variables, changed and joined by the user's.
std::vector<CacheRule> variable_rules(const std::vector<UserRule>& user = {});
/// The variables that the rules leave where they are whatever the program, with `:` between them.
std::string kept_variables(const std::vector<UserRule>& rules);

/// The row of a program; nullptr if no row knows it.
const Row* framework_of(const Program& program, const Argv& argv);
/// Does it fill a cache on purpose, so that nothing of it is changed?
bool keeps_caches(const Row* framework);

/// What to do with a flag: the user's rule, else the table's. `flag` is one word of argv up to its `=`: `-` for `_`,
/// and a prefix that hardly anything else could have. nullopt: no rule is about it.
std::optional<CacheRule> rule_for_flag(const Program& program, const Row* framework, std::string_view flag,
                                       const std::vector<UserRule>& user);
/// Does the name of an option or a variable say that something is cached there?
bool names_cache(std::string_view name);

} // namespace sharefs::cachefix

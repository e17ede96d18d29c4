#pragma once
// Which cache goes where, as tables: frameworks (known by the program's name, module or file), flags of their programs,
// environment variables. Each row has its reason and where that comes from.
#include "cachefix/launchers/walk.hpp"
#include "cachefix/store/local_root.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

struct Framework {
  std::string_view name;
  std::string_view programs = {}; ///< names of executables
  std::string_view verbs = {};    ///< one of these must be the program's first argument; empty: any
  std::string_view modules = {};  ///< `*` at the end stands for anything
  std::string_view files =
      {};                    ///< ends of the script's path, from a `/` on or the whole: "train_bash.py", "src/train.py"
  bool keeps_caches = false; ///< it fills the caches on purpose: no flag and no variable of this program is changed
  std::string_view source;
};

struct FlagRule {
  std::string_view id;         ///< stable name, as it stands in JSON
  std::string_view frameworks; ///< names, or "*" for every program
  std::string_view flags;      ///< `_` for `-` too; unique prefixes down to k_shortest_prefix are recognised
  CacheClass cache_class;
  std::string_view reason;
  std::string_view source;
  bool unless_prepared = false; ///< left where something lies there already, or the program only prepares it
};

struct VariableRule {
  std::string_view name;
  CacheClass cache_class;
  std::string_view fallback; ///< default with $NAME and ~; empty: there is none, or it is not under $HOME
  std::string_view reason;
  std::string_view source;
  Holds holds = Holds::data;
};

std::span<const VariableRule> variable_rules();

/// A rule of the user: sharefs.yaml's caches.rules, --keep and --local. Goes before the tables.
struct UserRule {
  std::string program; ///< glob over the program's name as it stands on the command line or its last component; "": all
  std::string flag;    ///< `--cache_dir`, or a variable's name
  bool local = false;  ///< true: rewrite to the node's own disk; false: keep
  std::string origin;  ///< "--keep", "sharefs.yaml:12:5"
};

/// The variables that the rules leave where they are whatever the program, with `:` between them.
std::string kept_variables(const std::vector<UserRule>& rules);

/// The framework of a program, nullptr if no row knows it.
const Framework* framework_of(const Program& program, const Argv& argv);

/// What to do with one flag of one program: the user's rule, else the table's.
struct AppliedRule {
  std::string id, reason;
  CacheClass cache_class = CacheClass::never;
  std::string flag; ///< as the rule spells it: "--cache_dir"
  bool unless_prepared = false;
  bool by_user = false; ///< asked for by --local, --keep or sharefs.yaml
};
/// `flag` is one word of argv up to its `=`: any spelling, or a prefix. nullopt: no rule is about it.
std::optional<AppliedRule> rule_for_flag(const Program& program, const Framework* framework, std::string_view flag,
                                         const std::vector<UserRule>& user);
/// `--cache-dir` as `--cache_dir`.
std::string underscored(std::string_view flag);
/// True if `word` (`--cache_d`, `--cache-dir`) is a spelling of `flag` (`--cache_dir`): `-` for `_`, or a prefix that
/// hardly anything else could have.
bool is_spelling_of(std::string_view word, std::string_view flag);
/// Does the name of an option or a variable say that something is cached there?
bool names_cache(std::string_view name);

} // namespace sharefs::cachefix

#pragma once
// `sharefs run`: a command line in, the same command line without the race out.
//   words -> walk (launchers/) -> facts (asked once each) -> decisions, each with its reason -> edits, by position
#include "cachefix/decision.hpp"
#include "cachefix/facts.hpp"
#include "cachefix/guard.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct LauncherFound {
  std::string launcher;
  std::size_t index = 0;
  friend bool operator==(const LauncherFound&, const LauncherFound&) = default;
};
template <FieldsOf<LauncherFound> L> auto fields(L& l) {
  return named("launcher", l.launcher, "index", l.index);
}

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::optional<std::string> framework; ///< nullopt: none that the table knows
};
template <FieldsOf<ScriptFound> S> auto fields(S& s) {
  return named("index", s.index, "name", s.name, "framework", s.framework);
}

/// Which caches are moved.
enum class When {
  shared, ///< all that lie on shared storage
  racy,   ///< not those whose file locks exclude other hosts
};

struct Rules {
  std::vector<UserRule> user; ///< the first that matches counts
  When when = When::shared;
  std::optional<Guard> guard = {}; ///< set for what may be Python; nullopt: off, or it is not installed
  bool seed = false;               ///< what is moved is copied from the share first
  Argv node = {};                  ///< words that start sharefs on a node, in front of the command there; empty: none
};

struct RunPlan {
  Argv argv; ///< what to execute
  std::vector<LauncherFound> chain;
  std::vector<ScriptFound> scripts;               ///< empty: cannot be told for certain
  Decisions decisions;                            ///< without warnings
  std::map<std::string, std::string> set;         ///< environment
  std::map<std::string, std::string> directories; ///< node-local, to be made -> the shared path that it stands for
  std::map<std::string, std::string> links;       ///< to models on the share: path -> target
  Diagnoses diagnoses;

  [[nodiscard]] Decisions of(std::initializer_list<Action> actions) const;
  [[nodiscard]] Decisions changes() const { return of({Action::rewrite, Action::set}); }
  [[nodiscard]] Decisions guarded() const { return of({Action::guard}); }
  [[nodiscard]] Decisions kept() const { return of({Action::leave}); }
};

using Environment = std::map<std::string, std::string, std::less<>>;

struct Start {
  std::vector<std::string> environment; ///< NAME=value
  std::string directory;
  std::string home;       ///< by passwd
  std::string input = {}; ///< the path of the file that is the command's stdin; empty: it is none
};

/// It asks `facts`, and changes nothing.
RunPlan plan_run(const Argv& argv, const Start& start, Facts& facts, const Rules& rules);

/// Makes the directories (0700, with the user's own directory above them) and links of a decision. Errors:
/// `permission` if somebody else owns the user's directory, `failed` with the reason otherwise.
Result<void> prepare(sys::System& system, const RunPlan& decided);

/// The fields of docs/run.schema.json: argv, final_argv, chain, script, changes, guarded, kept, environment; `scripts`
/// when there are several; final_argv_base64 when a word is not UTF-8 (which stands as U+FFFD in all others).
nlohmann::ordered_json document(const Argv& argv, const RunPlan& decided);

/// What is said about a decision: `--cache_dir /share/c -> /var/cache/...: REASON`, or why something was left.
std::string describe(const Decision& decision);
/// One line for each change.
std::vector<std::string> describe_changes(const RunPlan& decided);
/// What is said at every launch; empty: nothing is at stake.
std::string summary(const RunPlan& decided);

template <class T> void add_once(std::vector<T>& all, T one) {
  if (std::ranges::find(all, one) == all.end())
    all.push_back(std::move(one));
}

} // namespace sharefs::cachefix

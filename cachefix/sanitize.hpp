#pragma once
// The heart of `sharefs run`: a command line in, the same command line without the race out.
//   words -> launch (launchers/) -> stakes (asked once each) -> decisions, each with its reason -> edits, by position
#include "cachefix/decision.hpp"
#include "cachefix/guard.hpp"
#include "cachefix/launchers/walk.hpp"
#include "cachefix/stakes.hpp"
#include "cachefix/store/make_caches.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::string framework; ///< empty: none that the table knows
};

/// Which caches are moved.
enum class When {
  shared, ///< all that lie on shared storage
  racy,   ///< not those whose file locks exclude other hosts: there moving is a matter of speed
};

struct Rules {
  std::vector<UserRule> user; ///< the first that matches counts
  bool enabled = true;        ///< SHAREFS_CACHEFIX=0 switches all off
  When when = When::shared;
  std::optional<Guard> guard = {}; ///< set for what may be Python; nullopt: off, or it is not installed
  bool seed = false;               ///< what is moved gets the complete datasets of the share
  std::vector<std::string> node =
      {}; ///< words that start sharefs on a node: `/usr/bin/sharefs run --node --`; empty: none
};

struct Sanitized {
  Argv argv;                                              ///< what to execute
  std::vector<std::pair<std::string, std::size_t>> chain; ///< launcher, index
  std::vector<ScriptFound> scripts;                       ///< empty: cannot be told for certain
  Decisions decisions;                                    ///< without warnings
  std::map<std::string, std::string> set;                 ///< environment
  std::map<std::string, std::string> directories; ///< node-local, to be made -> the shared path that it stands for
  std::vector<ModelLink> links;
  std::vector<FileCopy> copies;
  std::vector<std::string> hosts; ///< that the program starts on besides or instead of this one, as far as known
  Diagnoses diagnoses;
  bool understood = true; ///< false: nothing was changed because some word is not known

  [[nodiscard]] Decisions changes() const { return that_change(true); }
  [[nodiscard]] Decisions kept() const { return that_change(false); }
  [[nodiscard]] Decisions that_change(bool something) const;
  /// What `directories` lie in: this user's own, one for data and one for code.
  [[nodiscard]] std::set<std::string> roots() const;
};

struct Start {
  std::vector<std::string> environment; ///< NAME=value
  std::string directory;
  std::string home; ///< by passwd
};

Sanitized sanitize(const Argv& argv, const Start& start, Stakes& stakes, const Rules& rules);

/// A whole script file: the text with its changes, and `export` lines for the variables that its commands need.
struct ScriptResult {
  std::string text;
  Sanitized sanitized; ///< subjects of diagnoses are `FILE:LINE:COLUMN`
};
ScriptResult sanitize_script(const std::string& file, const std::string& text, const Start& start, Stakes& stakes,
                             const Rules& rules);

/// Makes the directories (0700, with the user's own directory above them), links and copies of a decision. A copy never
/// replaces a file and goes through no link: where its name is taken it gets another, and the decision is changed to
/// name that. Where it cannot be made at all the command keeps the original, and `decision` says so. Errors:
/// `permission` if somebody else owns the user's directory, `failed` with the reason otherwise.
Result<void> prepare(sys::System& system, Sanitized& decision, const LocalRoot& root);

/// The fields of docs/run.schema.json: argv, final_argv, chain, script, changes, kept, environment; `scripts` when
/// there are several; final_argv_base64 when a word is not UTF-8 (which stands as U+FFFD in all others).
nlohmann::ordered_json document(const Argv& argv, const Sanitized& decision);

/// What is said about a decision: `--cache_dir /share/c -> /var/cache/...: REASON`, or why something was left.
std::string describe(const Decision& decision);
/// One line for each change, and one for all that nobody named: defaults that lie on shared storage.
std::vector<std::string> describe_changes(const Sanitized& decided);
/// What is said at every launch: "datasets of /share/c on this node (/var/cache/...), models stay"; empty: no change.
std::string summary(const Sanitized& decided);

template <class T> void add_once(std::vector<T>& all, T one) {
  if (std::ranges::find(all, one) == all.end())
    all.push_back(std::move(one));
}

} // namespace sharefs::cachefix

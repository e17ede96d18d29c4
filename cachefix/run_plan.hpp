#pragma once
// `sharefs run` takes a command line and returns the same command line without the race.
//   words -> walk (launchers/) -> facts (each read once) -> decisions, each with its reason -> edits, by position
#include "cachefix/decision.hpp"
#include "cachefix/facts.hpp"
#include "cachefix/guard.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::optional<std::string> framework; ///< nullopt: no row of the table fits
};
template <FieldsOf<ScriptFound> S> auto fields(S& s) {
  return named("index", s.index, "name", s.name, "framework", s.framework);
}

/// Says which caches are moved.
enum class When {
  shared, ///< all caches on shared storage
  racy,   ///< only caches where file locks do not exclude other hosts
};

struct Rules {
  std::vector<UserRule> user; ///< the first that matches counts
  When when = When::shared;
  std::optional<Guard> guard = {}; ///< nullopt: the guard is switched off or not installed
  Argv node = {}; ///< words in front of a command that start sharefs on its node; empty: no node has this sharefs
};

struct RunPlan {
  Argv argv;                                      ///< the command to execute
  std::vector<ChainLink> chain;                   ///< launchers that certainly run, each once
  std::vector<ScriptFound> scripts;               ///< empty: not known for certain
  Decisions changes, guarded, kept;               ///< by what is done with a cache
  std::map<std::string, std::string> set;         ///< variables of the command that get a value
  std::map<std::string, std::string> directories; ///< node-local directory to make -> its shared path
  std::map<std::string, std::string> links;       ///< links to models on the share: path -> target
  Diagnoses diagnoses;
};

using Environment = std::map<std::string, std::string, std::less<>>;

struct Start {
  Environment environment;
  std::string directory;
  std::string home;       ///< home directory of the user in passwd
  std::string input = {}; ///< path of the file that is the command's stdin; empty: stdin is no file
};

/// Decides what to change in a command line. Reads through `facts` only, and changes nothing.
RunPlan plan_run(const Argv& argv, const Start& start, Facts& facts, const Rules& rules);

/// Makes the directories (mode 0700, also the user's own directory above them) and the links of a plan. Errors are
/// those of make_caches() and of making a link.
Result<void> prepare(sys::System& system, const RunPlan& decided);

/// Returns the fields of docs/run.schema.json: argv, final_argv, chain, script, changes, guarded, kept, environment;
/// `scripts` if there are several; final_argv_base64 if a word is not UTF-8, because all other fields have U+FFFD for
/// its invalid bytes.
nlohmann::ordered_json document(const Argv& argv, const RunPlan& decided);

/// Returns a line for each change and each guarded cache; with `explain` also why others were left.
std::vector<std::string> describe(const RunPlan& decided, bool explain = false);
/// Returns the line that is shown at every launch; empty if no cache is moved or guarded.
std::string summary(const RunPlan& decided);

template <class T> void add_once(std::vector<T>& all, T one) {
  if (std::ranges::find(all, one) == all.end())
    all.push_back(std::move(one));
}

} // namespace sharefs::cachefix

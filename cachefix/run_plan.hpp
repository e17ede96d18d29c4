#pragma once
// `sharefs run` takes a command line and returns the same command line without the race.
//   words -> walk (launchers/) -> facts (each read once) -> decisions, each with its reason -> edits, by position
#include "base/argv.hpp"
#include "base/diagnosis.hpp"
#include "base/fields.hpp"
#include "cachefix/facts.hpp"
#include "cachefix/guard.hpp"
#include "cachefix/rules/rules.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

enum class Action {
  leave,
  rewrite, ///< a word gets another path
  set,     ///< a variable is set, or words that set one are added
  guard,   ///< no word changes: the guard builds in `to` what the program asks for at `from`
  warn,
};
const char* to_string(Action action);

/// One change of a command line. Places count in the original words, so the order of edits does not matter.
struct Edit {
  std::size_t word = 0;
  std::size_t begin = 0, end = 0; ///< bytes [begin, end) of the word become `text`; if begin is end, it is inserted
  std::string text = {};
  std::vector<std::string> words = {}; ///< if not empty, only these words are inserted in front of the word
  friend bool operator==(const Edit&, const Edit&) = default;
};

/// A decision about one cache: a value with its reason and the edits that carry it out.
struct Decision {
  Action action = Action::leave;
  std::string flag = {};                 ///< the option as spelled, the variable's name, or the launcher
  std::optional<std::size_t> index = {}; ///< of the word with the value, in the original argv
  std::optional<std::string> from = {}, to = {};
  CacheClass cache_class = CacheClass::node_local;
  std::string rule = {}, reason = {};
  bool variable = false; ///< `flag` is a variable of the program's environment, `to` its value
  bool implied = false;  ///< true if nobody named this cache: its default lies below a shared directory
  std::vector<Edit> edits = {};
  std::string stands_for = {};             ///< the shared path for which the node-local directory `to` stands
  std::vector<std::string> models = {};    ///< names on the share to which `to` gets links
  std::optional<Diagnosis> diagnosis = {}; ///< of `warn`

  /// True if it changes a word or a variable.
  [[nodiscard]] bool is_change() const { return action == Action::rewrite || action == Action::set; }
  /// True if it sets a variable in the environment of the command, not in a word.
  [[nodiscard]] bool is_environment() const { return action == Action::set && variable; }
  friend bool operator==(const Decision&, const Decision&) = default;
};
/// The fields that every decision has in JSON.
template <FieldsOf<Decision> D> auto fields(D& d) {
  return named("flag", d.flag, "index", d.index, "class", d.cache_class, "implied", d.implied, "reason", d.reason);
}
using Decisions = std::vector<Decision>;
void append(Decisions& all, Decisions more);

/// Returns a decision that changes nothing and only reports.
Decision warning(std::string code, const std::string& subject, std::string message, std::string hint = {},
                 Severity severity = Severity::warning);
Decision warning(const Mention& mention, Severity severity = Severity::warning);

/// Returns the words after all edits of all decisions.
Argv edited(const Argv& argv, const Decisions& decisions);

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::optional<std::string> framework; ///< nullopt: no row of the table fits
};
template <FieldsOf<ScriptFound> S> auto fields(S& s) {
  return named("index", s.index, "name", s.name, "framework", s.framework);
}

struct Rules {
  std::vector<UserRule> user;      ///< the first that matches counts
  bool only_racy = false;          ///< caches stay where file locks exclude other hosts
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

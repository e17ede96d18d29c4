#pragma once
// A decision about one cache: a value with its reason and the edits that carry it out. A launch has a list of them.
#include "base/argv.hpp"
#include "base/diagnosis.hpp"
#include "base/fields.hpp"
#include "cachefix/rules/rules.hpp"

#include <optional>
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

} // namespace sharefs::cachefix

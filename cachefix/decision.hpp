#pragma once
// What is decided about one cache, with its reason and all that it takes. Values; a launch is a list of them.
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
  rewrite, ///< a word names another path
  set,     ///< a variable, or words that carry one
  guard,   ///< no word changes: the guard builds in `to` what is built for `from`
  warn,
};
const char* to_string(Action action);

/// One change of a command line. Places are those of the original words, so the order of edits does not matter.
struct Edit {
  std::size_t word = 0;
  std::size_t begin = 0, end = 0; ///< its bytes [begin, end) become `text`; an empty place is an insertion
  std::string text = {};
  std::vector<std::string> words = {}; ///< or: these come in front of the word
  friend bool operator==(const Edit&, const Edit&) = default;
};

struct Decision {
  Action action = Action::leave;
  std::string flag = {};                 ///< as it stands in the command line, or the variable's name, or the file
  std::optional<std::size_t> index = {}; ///< of the word with the value, in the original argv
  std::optional<std::string> from = {}, to = {};
  CacheClass cache_class = CacheClass::node_local;
  std::string rule = {}, reason = {};
  bool variable = false; ///< `flag` is a variable of the program's environment, `to` its value
  bool implied = false;  ///< nobody named this cache: it is a default below a shared directory
  std::vector<Edit> edits = {};
  std::string directory = {};              ///< a node-local one to make (0700) before the program starts
  std::string stands_for = {};             ///< the shared path that `directory` stands for
  std::vector<std::string> models = {};    ///< names on the share, which links in `directory` lead to
  std::optional<Diagnosis> diagnosis = {}; ///< of `warn`

  /// Does it change a word or a variable?
  [[nodiscard]] bool is_change() const { return action == Action::rewrite || action == Action::set; }
  /// In the environment of the command, not in a word?
  [[nodiscard]] bool is_environment() const { return action == Action::set && variable; }
  friend bool operator==(const Decision&, const Decision&) = default;
};
/// As JSON has it of each of them.
template <FieldsOf<Decision> D> auto fields(D& d) {
  return named("flag", d.flag, "index", d.index, "class", d.cache_class, "implied", d.implied, "reason", d.reason);
}
using Decisions = std::vector<Decision>;
void append(Decisions& all, Decisions more);

/// What is only said.
Decision warning(std::string code, const std::string& subject, std::string message, std::string hint = {},
                 Severity severity = Severity::warning);

/// What takes the guard away from a program, in a command line or in a text.
struct Mention {
  int line = 1;        ///< of the text
  std::string code;    ///< of a loss: SF402, SF404, SF407; empty: there is none
  std::string subject; ///< the word
  std::string says;    ///< what it does; of a program its launchers, of a cache its value
  friend bool operator==(const Mention&, const Mention&) = default;
};

/// The words after all edits of all decisions.
Argv edited(const Argv& argv, const Decisions& decisions);

} // namespace sharefs::cachefix

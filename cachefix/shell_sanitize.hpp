#pragma once
// Commands inside of shell text: each is sanitized as a command line of its own, and the changed words are put back.
#include "cachefix/draft.hpp"

namespace sharefs::cachefix {

/// Where the text stands and what holds around it.
struct ShellScope {
  std::optional<std::size_t> index; ///< of the word of argv that is this text; nullopt: a file
  std::string subject;              ///< for messages: the file's name, or "bash -c"
  std::string directory;
  bool carries = true;    ///< a variable that sharefs sets reaches this shell
  bool alone = true;      ///< and no other program beside it
  bool elsewhere = false; ///< it runs on other hosts too
  int depth = 0;
};

/// The text with its changes; nullopt: nothing is changed, cannot be seen through (diagnosed), or a question is noted.
/// Changes, kept flags, variables and diagnoses go into `draft`; programs that were found are appended to `programs`.
std::optional<std::string> sanitize_shell(Draft& draft, const std::string& text, const ShellScope& scope,
                                          std::vector<ScriptFound>& programs);

/// A whole script file: as above, with `export` lines for the variables that its commands need.
struct ScriptResult {
  std::string text;
  Sanitized sanitized; ///< changes, kept, diagnoses (subject `FILE:LINE:COLUMN`), questions
};
ScriptResult sanitize_script(const std::string& file, const std::string& text, const Facts& facts, const Rules& rules);

} // namespace sharefs::cachefix

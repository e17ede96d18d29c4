#pragma once
// One shell text, command by command. Internal to the heart.
#include "cachefix/launch.hpp"
#include "cachefix/shell/shell.hpp"

namespace sharefs::cachefix {

/// Where a text stands.
struct TextPlace {
  std::optional<std::size_t> index; ///< of the word of argv that is this text; nullopt: a file
  std::string subject;              ///< for messages: the file's name, or "bash -c"
  bool editable = true;             ///< false: a file that is only reported on
  bool sourced = false;             ///< what it assigns is judged where it is used
};

struct TextFound {
  std::string text; ///< with its changes
  Decisions decisions;
  std::vector<ScriptFound> scripts;
  std::size_t first_statement = 0;
};

/// `known`: the arguments of the text, as "1", "2", ...
TextFound judge_text(const std::string& text, const TextPlace& place, Setting setting, Stakes& stakes,
                     const Rules& rules, ShellVariables known = {});

} // namespace sharefs::cachefix

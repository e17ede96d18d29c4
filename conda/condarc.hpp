#pragma once
// The entry of the store in `envs_dirs` of a user's .condarc, by changing its text at one place: comments and all other
// keys stay as they are. Pure.
#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

/// The store behind the user's own first directory, which conda, mamba and micromamba take for `create -n`. Where the
/// text has no `envs_dirs` that is one line with `own` and the store. Unchanged if the store is named already.
/// `unsupported`: the text cannot be changed safely; the message begins with the line's number where one is to blame.
Result<std::string> with_envs_directory(std::string_view text, const std::string& own, const std::string& store);

/// Without what with_envs_directory() adds, byte for byte; unchanged if the store is not named. `unsupported` as above.
Result<std::string> without_envs_directory(std::string_view text, const std::string& store);

/// The line that a text without `envs_dirs` gets, without its end.
std::string envs_directories_line(const std::string& own, const std::string& store);

/// CONDA_ENVS_PATH or CONDA_ENVS_DIRS, as a shell's startup file or /etc/environment sets it.
struct EnvsVariable {
  std::string name, where; ///< `FILE:LINE`
  friend bool operator==(const EnvsVariable&, const EnvsVariable&) = default;
};
std::vector<EnvsVariable> envs_variables(const std::string& path, std::string_view text);

} // namespace sharefs::conda

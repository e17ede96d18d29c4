#pragma once
// A program of a user, run for him where others may write: what was checked is what is run, whatever they rename
// meanwhile.
#include "base/result.hpp"
#include "sys/fs/file_identity.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::sys {

struct CheckedProgram {
  std::string directory;                       ///< absolute
  FileIdentity directory_identity = {};        ///< as it was checked
  std::string path;                            ///< below it; no link
  FileIdentity identity = {};                  ///< of the program
  std::optional<std::uint32_t> own_group = {}; ///< of the user alone, as many have one: it may write
  friend bool operator==(const CheckedProgram&, const CheckedProgram&) = default;
};

/// Replaces this process, which is the user already, in that directory: the program sees it as /proc/self/cwd, and so
/// finds there what belongs to it, libraries too. It and the directories that it lies in are root's or this user's, and
/// nobody else may write to them. Returns only on failure: `conflict` (another one), `permission`.
Error exec_checked(const CheckedProgram& program, const std::vector<char*>& argv, const std::vector<char*>& envp);

} // namespace sharefs::sys

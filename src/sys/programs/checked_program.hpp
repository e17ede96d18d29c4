#pragma once
// Runs a program of a user from a directory where others may write. The program that was checked is the one that runs,
// even if others rename files meanwhile.
#include "base/result.hpp"
#include "sys/fs/file_identity.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::sys {

struct CheckedProgram {
  std::string directory;                       ///< absolute
  FileIdentity directory_identity = {};        ///< the directory that was checked
  std::string path;                            ///< of the program below the directory; it must contain no link
  FileIdentity identity = {};                  ///< the program that was checked
  std::optional<std::uint32_t> own_group = {}; ///< a group whose only member is the user; it may have write permission
  friend bool operator==(const CheckedProgram&, const CheckedProgram&) = default;
};

/// Replaces this process, which must have become the user already, by the program. The directory becomes the working
/// directory, and the program finds its files and libraries there by /proc/self/cwd. The program and its directories
/// must belong to root or this user, and nobody else may write to them. Returns only on failure: `conflict` (a
/// different program or directory), `permission`.
Error exec_checked(const CheckedProgram& program, const std::vector<char*>& argv, const std::vector<char*>& envp);

} // namespace sharefs::sys

#pragma once
#include "cachefix/launchers/walk.hpp"

namespace sharefs::cachefix {

/// What the launchers so far change for the program; copied for every context of mpirun.
struct Scope {
  std::string directory;
  std::vector<Assignment> assigned;
  std::vector<std::string> unset;
  bool cleared = false;
  std::vector<std::size_t> chain;

  /// True if the option is about the directory or the variables of the program. Its value begins at byte `begin` of its
  /// word.
  bool take(const Launcher& launcher, const GivenOption& option, std::size_t begin);
};

} // namespace sharefs::cachefix

#pragma once
// Lets a daemon wait for signals, changes of the mount table, and a time.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <set>
#include <vector>

namespace sharefs::sys {

class Wakeups {
 public:
  /// Blocks `signals`, so that only wait() receives them from now on. Forked children (Child::fork) get them as usual.
  static Result<Wakeups> make(const std::vector<int>& signals);

  struct Woken {
    std::set<int> signals;
    bool mounts = false; ///< the mount table has changed since the last wait()
  };
  Woken wait(Deadline until);

 private:
  Fd m_signals, m_mounts;
};

} // namespace sharefs::sys

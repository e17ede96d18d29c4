#pragma once
// The events that a daemon waits for: signals, changes of the mount table, the time.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <set>
#include <vector>

namespace sharefs::sys {

class Wakeups {
 public:
  /// From here on `signals` come through wait() only; children get them as ever.
  static Result<Wakeups> make(const std::vector<int>& signals);

  struct Woken {
    std::set<int> signals;
    bool mounts = false; ///< mounts came or went since the last wait()
  };
  Woken wait(Deadline until);

 private:
  Fd m_signals, m_mounts;
};

} // namespace sharefs::sys

#pragma once
// What a program that stays waits for: signals, changes of the mount table, the end of its work, the time.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <set>
#include <vector>

namespace sharefs::sys {

class Wakeups {
 public:
  /// From here on `signals` come through wait() only, in this thread and those that it starts; children get them as
  /// ever.
  static Result<Wakeups> make(const std::vector<int>& signals);

  struct Woken {
    std::set<int> signals;
    bool mounts = false; ///< mounts came or went since the last wait()
    bool ended = false;  ///< end() was called
  };
  Woken wait(Deadline until);
  void end() const; ///< from any thread

 private:
  Fd m_signals, m_mounts, m_end;
};

} // namespace sharefs::sys

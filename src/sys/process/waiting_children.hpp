#pragma once
// Children that have answered what they were asked, and wait for the next question: one fork serves many looks.
#include "sys/process/child.hpp"

#include <vector>

namespace sharefs::sys {

/// Only the thread that made it keeps children: every other one, and a forked child, gets a new one each time. So
/// nobody else reads from a child's socket, and a child can end with its parent (PR_SET_PDEATHSIG means the thread).
/// A child keeps the rights and namespaces that it began with; this process never changes its own.
class WaitingChildren {
 public:
  WaitingChildren() = default;
  WaitingChildren(const WaitingChildren&) = delete;
  WaitingChildren& operator=(const WaitingChildren&) = delete;
  ~WaitingChildren() { end(); }

  /// One that waits and has become `as`, or a new one that does `work`.
  Result<WorkingChild> take(const std::optional<User>& as, const std::function<void(int fd)>& work);
  /// It waits for what take() asks next, unless it is ended to make room for others.
  void keep(const std::optional<User>& as, WorkingChild child);
  /// Before another program takes the place of this one, which would have children that it knows nothing of.
  void end();

 private:
  struct Waiting {
    std::optional<User> as;
    WorkingChild child;
  };
  [[nodiscard]] bool is_ours() const { return ::gettid() == m_thread; }

  pid_t m_thread = ::gettid();
  std::vector<Waiting> m_children; ///< who was asked last is the last
};

} // namespace sharefs::sys

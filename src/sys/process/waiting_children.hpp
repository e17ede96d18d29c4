#pragma once
// Children that have answered all their questions and wait for more, so that one fork serves many requests.
#include "sys/process/child.hpp"

#include <vector>

namespace sharefs::sys {

/// Only the thread that made this object keeps children; any other thread, or a forked child, gets a new child each
/// time. So nobody else reads from a child's socket, and a child can end with its parent (PR_SET_PDEATHSIG refers to
/// the thread). A waiting child keeps the rights and namespaces of its start, which is correct because this process
/// never changes its own.
class WaitingChildren {
 public:
  WaitingChildren() = default;
  WaitingChildren(const WaitingChildren&) = delete;
  WaitingChildren& operator=(const WaitingChildren&) = delete;
  ~WaitingChildren() { end(); }

  /// Returns a waiting child that works as `as`, or starts a new one that runs `work`.
  Result<WorkingChild> take(const std::optional<User>& as, const std::function<void(int fd)>& work);
  /// Keeps the child for a later take(). The least recently used child is ended if there are too many.
  void keep(const std::optional<User>& as, WorkingChild child);
  /// Ends all waiting children. It is called before execve(2): the new program would have children that it does not
  /// know.
  void end();

 private:
  struct Waiting {
    std::optional<User> as;
    WorkingChild child;
  };
  [[nodiscard]] bool is_ours() const { return ::gettid() == m_thread; }

  pid_t m_thread = ::gettid();
  std::vector<Waiting> m_children; ///< ordered by their last use, the latest at the end
};

} // namespace sharefs::sys

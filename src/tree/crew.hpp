#pragma once
// Private to tree: threads that share a stack of tasks. The newest task comes first, so that a walk goes down before it
// goes on sideways, and keeps few directories open.
#include "sys/process/child.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sharefs::tree {

class Crew {
 public:
  using Task = std::function<void()>;
  /// How many begin, and how many there may be where more of them do more.
  struct Threads {
    unsigned first = 1, most = 1;
  };
  static constexpr std::size_t k_most_held = 48; ///< directories: as many descriptors, or twice as many

  /// From any thread. A task may add tasks.
  void add(Task task);
  /// A task that opens a directory: begun when there is no other one, and few directories are held open.
  void add_opening(Task task);
  void hold() { ++m_held; }
  void let_go() { --m_held; }
  /// Does all tasks; this thread is the first of those that do. `done` counts what they did: it tells whether more
  /// threads do more. An exception of a task stops all and comes out here.
  void run(Threads threads, std::function<std::uint64_t()> done = {});
  /// No task is begun any more.
  void stop();
  [[nodiscard]] unsigned threads() const { return m_allowed; }

 private:
  void work();
  [[nodiscard]] bool may_begin() const;
  Task next();
  // With the lock held:
  void adapt();
  void start_threads(); ///< as many as are allowed; never fewer again: those too many wait

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Task> m_tasks, m_openings;
  std::size_t m_open = 0; ///< tasks that wait or run
  std::size_t m_running = 0;
  std::atomic<std::size_t> m_held{0};
  std::atomic<unsigned> m_allowed{1};
  bool m_stopped = false;
  std::exception_ptr m_exception;
  std::vector<std::jthread> m_others;

  // Of adapt()
  unsigned m_most = 1;
  std::function<std::uint64_t()> m_done;
  sys::Deadline m_since{};
  std::uint64_t m_before = 0;
  double m_rate = 0;
  bool m_tried = false; ///< there are twice as many threads as there were when m_rate was measured
  unsigned m_rest = 2;  ///< looks until more threads are tried again; the first one is of the beginning
};

} // namespace sharefs::tree

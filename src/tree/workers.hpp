#pragma once
// Private to tree: threads that share a stack of tasks. The newest task is done first, so that a walk is depth-first
// and keeps few directories open.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace sharefs::tree {

class Workers {
 public:
  using Task = std::function<void()>;
  static constexpr std::size_t k_most_held = 48; ///< directories that are open; each takes one or two descriptors

  /// Adds a task. Any thread may call it, also a task.
  void add(Task task);
  /// Adds a task that opens a directory. It is begun only if no other task waits and few directories are open.
  void add_opening(Task task);
  void hold() { ++m_held; } ///< counts an open directory
  void release() { --m_held; }
  /// Runs all tasks on this number of threads, including this one. If a task throws an exception, the others are
  /// stopped and it is thrown here.
  void run(unsigned threads);
  /// Makes the threads begin no more tasks.
  void stop();

 private:
  void work();
  [[nodiscard]] bool may_begin() const;
  Task next();

  std::atomic<std::size_t> m_held{0}; ///< before the tasks, which release directories when they are destroyed
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Task> m_tasks, m_openings;
  std::size_t m_open = 0; ///< the number of tasks that wait or run
  std::size_t m_running = 0;
  bool m_stopped = false;
};

} // namespace sharefs::tree

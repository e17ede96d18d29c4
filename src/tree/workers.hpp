#pragma once
// Private to tree: threads that share a stack of tasks. The newest task comes first, so that a walk goes down before it
// goes on sideways, and keeps few directories open.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace sharefs::tree {

class Workers {
 public:
  using Task = std::function<void()>;
  static constexpr std::size_t k_most_held = 48; ///< directories: as many descriptors, or twice as many

  /// From any thread. A task may add tasks.
  void add(Task task);
  /// A task that opens a directory: begun when there is no other one, and few directories are held open.
  void add_opening(Task task);
  void hold() { ++m_held; }
  void let_go() { --m_held; }
  /// Does all tasks by so many threads, of which this one is the first. An exception of a task stops all and comes out
  /// here.
  void run(unsigned threads);
  /// No task is begun any more.
  void stop();

 private:
  void work();
  [[nodiscard]] bool may_begin() const;
  Task next();

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Task> m_tasks, m_openings;
  std::size_t m_open = 0; ///< tasks that wait or run
  std::size_t m_running = 0;
  std::atomic<std::size_t> m_held{0};
  bool m_stopped = false;
  std::exception_ptr m_exception;
};

} // namespace sharefs::tree

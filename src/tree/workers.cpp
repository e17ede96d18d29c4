#include "tree/workers.hpp"

#include "base/parallel.hpp"

#include <utility>

namespace sharefs::tree {

void Workers::add(Task task) {
  const std::lock_guard lock(m_mutex);
  m_tasks.push_back(std::move(task));
  ++m_open;
  m_changed.notify_one();
}

void Workers::add_opening(Task task) {
  const std::lock_guard lock(m_mutex);
  m_openings.push_back(std::move(task));
  ++m_open;
  m_changed.notify_one();
}

void Workers::stop() {
  const std::lock_guard lock(m_mutex);
  m_stopped = true;
  m_changed.notify_all();
}

void Workers::run(unsigned threads) {
  sharefs::in_parallel(threads, threads, [this](std::size_t) { work(); });
  m_tasks.clear();
  m_openings.clear();
}

bool Workers::may_begin() const {
  // No further directory is opened while tasks of open directories wait. Above the limit, one more is opened only if no
  // task runs: then all open directories wait for their subdirectories.
  return !m_tasks.empty() || (!m_openings.empty() && (m_held < k_most_held || m_running == 0));
}

Workers::Task Workers::next() {
  auto& from = m_tasks.empty() ? m_openings : m_tasks;
  Task task = std::move(from.back());
  from.pop_back();
  return task;
}

void Workers::work() {
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_changed.wait(lock, [this] { return m_stopped || m_open == 0 || may_begin(); });
    if (m_stopped || m_open == 0)
      return;
    Task task = next();
    ++m_running;
    lock.unlock();
    try {
      task();
      task = nullptr; // releases the directories that the task holds
    } catch (...) {
      stop();
      throw;
    }
    lock.lock();
    --m_running;
    if (--m_open == 0 || m_stopped)
      m_changed.notify_all();
  }
}

} // namespace sharefs::tree

#include "tree/crew.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

namespace sharefs::tree {

namespace {

using namespace std::chrono_literals;

constexpr auto k_look = 200ms;         ///< so long is measured at least,
constexpr std::uint64_t k_of_each = 4; ///< and so much of each thread
constexpr double k_gain = 1.25;        ///< twice as many threads are worth it that do so much more
constexpr unsigned k_looks_to_rest = 25;

} // namespace

void Crew::add(Task task) {
  const std::lock_guard lock(m_mutex);
  m_tasks.push_back(std::move(task));
  ++m_open;
  if (m_running < m_allowed)
    m_changed.notify_one();
}

void Crew::add_opening(Task task) {
  const std::lock_guard lock(m_mutex);
  m_openings.push_back(std::move(task));
  ++m_open;
  if (m_running < m_allowed)
    m_changed.notify_one();
}

void Crew::stop() {
  const std::lock_guard lock(m_mutex);
  m_stopped = true;
  m_changed.notify_all();
}

void Crew::run(Threads threads, std::function<std::uint64_t()> done) {
  m_allowed = std::max(1U, threads.first);
  m_most = done ? std::max(m_allowed.load(), threads.most) : m_allowed.load();
  m_done = std::move(done);
  m_since = sys::Clock::now();
  m_before = m_done ? m_done() : 0;
  {
    const std::lock_guard lock(m_mutex);
    start_threads();
  }
  work();
  m_others.clear();
  m_tasks.clear();
  m_openings.clear();
  if (m_exception)
    std::rethrow_exception(m_exception);
}

void Crew::start_threads() {
  try {
    while (m_others.size() + 1 < m_allowed)
      m_others.emplace_back([this] { work(); });
  } catch (const std::system_error&) { // no more threads for this user: those that there are do all of it
  }
}

bool Crew::may_begin() const {
  if (m_running >= m_allowed)
    return false;
  // What waits in the directories that are open needs no further one; but those above them may be all that is open.
  return !m_tasks.empty() || (!m_openings.empty() && (m_held < k_most_held || m_running == 0));
}

Crew::Task Crew::next() {
  auto& from = m_tasks.empty() ? m_openings : m_tasks;
  Task task = std::move(from.back());
  from.pop_back();
  return task;
}

/// More threads for as long as they do more: where a round trip or a disk is waited for, not where a processor is.
void Crew::adapt() {
  const auto now = sys::Clock::now();
  if (now - m_since < k_look)
    return;
  const auto done = m_done();
  if (done - m_before < k_of_each * m_allowed)
    return;
  const double rate = static_cast<double>(done - m_before) / std::chrono::duration<double>(now - m_since).count();
  m_since = now;
  m_before = done;
  if (m_rest > 0 && --m_rest > 0)
    return;
  if (m_tried && rate < k_gain * m_rate) {
    m_allowed = m_allowed / 2;
    m_tried = false;
    m_rest = k_looks_to_rest;
    return;
  }
  m_rate = rate;
  m_tried = m_allowed < m_most;
  if (m_tried) {
    m_allowed = std::min(2 * m_allowed, m_most);
    start_threads();
    m_changed.notify_all();
  }
}

void Crew::work() {
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_changed.wait(lock, [this] { return m_stopped || m_open == 0 || may_begin(); });
    if (m_stopped || m_open == 0)
      return;
    Task task = next();
    ++m_running;
    lock.unlock();
    std::exception_ptr exception;
    try {
      task();
      task = nullptr; // and what it holds
    } catch (...) {
      exception = std::current_exception();
    }
    lock.lock();
    --m_running;
    if (exception) {
      m_exception = exception;
      m_stopped = true;
    }
    if (--m_open == 0 || m_stopped)
      m_changed.notify_all();
    else if (m_most > m_allowed || m_tried)
      adapt();
  }
}

} // namespace sharefs::tree

#pragma once
#include <exception>
#include <mutex>

namespace sharefs {

/// The first exception of several threads, for the thread that waits for them: one that leaves a thread ends the
/// process by SIGABRT.
class Thrown {
 public:
  template <class Work> void keep(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(m_mutex);
      if (!m_first)
        m_first = std::current_exception();
    }
  }
  /// Once the threads have ended.
  void rethrow() const {
    if (m_first)
      std::rethrow_exception(m_first);
  }

 private:
  std::mutex m_mutex;
  std::exception_ptr m_first;
};

} // namespace sharefs

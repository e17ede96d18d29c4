#pragma once
// The thread behind a progress line: nothing for a while, then a fresh line now and then.
#include "ui/status_line.hpp"

#include <chrono>
#include <condition_variable>
#include <string>
#include <thread>

namespace sharefs::ui {

/// "mounting 3/8, 4 s: share"; without a total and before the first step "mounting, 4 s".
std::string progress_text(std::string_view what, std::size_t done, std::size_t total, std::string_view now_at,
                          std::chrono::seconds elapsed);

class Ticker {
 public:
  struct Timing {
    std::chrono::milliseconds delay{1000};   ///< nothing is drawn before
    std::chrono::milliseconds interval{250}; ///< between two drawings
  };

  Ticker(StatusLine& line, int width, std::string what, std::size_t total, Timing timing);
  ~Ticker(); ///< ends the thread and erases the line
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  void advance(std::string_view now_at); ///< thread-safe

 private:
  void run();

  StatusLine& m_line;
  const int m_width;
  const std::string m_what;
  const std::size_t m_total;
  const Timing m_timing;
  const std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
  std::mutex m_mutex;
  std::condition_variable m_end;
  bool m_ending = false;
  std::size_t m_done = 0;
  std::string m_now_at;
  std::thread m_thread; ///< last: it uses all of the above
};

} // namespace sharefs::ui

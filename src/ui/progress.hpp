#pragma once
// stderr as messages share it with one line that is drawn over and over, and the thread that draws it.
#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sharefs::ui {

/// Thread-safe.
class StatusLine {
 public:
  explicit StatusLine(std::ostream& err) : m_err(err) {}

  /// Takes the line away; then the text as it is, usually whole lines.
  void print(std::string_view text = {});
  /// Show `text` (visible characters only) at the bottom, cut to fit a terminal of `width` columns.
  void draw(std::string_view text, int width);
  /// Of several that draw, one begun while the other is at work, only the last one does.
  void draw(const void* by, std::string_view text, int width);
  void begin(const void* by);
  void end(const void* by);

 private:
  std::mutex m_mutex;
  std::ostream& m_err;
  std::size_t m_drawn = 0; ///< columns that the status line covers
  std::vector<const void*> m_drawers;
};

/// The text of a progress line: "mounting 3/8, 4 s: share"; without a total and before the first step "mounting, 4 s".
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

  void advance(std::string_view now_at); ///< thread-safe, as the next one
  void at(std::string_view now_at);      ///< further on in the same step

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

#pragma once
// stderr, which messages share with one line that is drawn again and again, and the thread that draws this line.
#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sharefs::ui {

/// The last line of stderr. All its functions are thread-safe.
class StatusLine {
 public:
  explicit StatusLine(std::ostream& err) : m_err(err) {}

  /// Erases the status line, then prints the text as it is, usually whole lines.
  void print(std::string_view text = {});
  /// Draws `text` (visible characters only) as the last line, cut to fit a terminal of `width` columns. Where several
  /// draw at once (one began while another was at work), only the one that began last does.
  void draw(std::string_view text, int width, const void* by = nullptr);
  /// `by` starts or stops drawing.
  void begin(const void* by);
  void end(const void* by);

 private:
  std::mutex m_mutex;
  std::ostream& m_err;
  std::size_t m_drawn = 0; ///< columns that the status line covers
  std::vector<const void*> m_drawers;
};

/// Returns the text of a progress line: "mounting 3/8, 4 s: share"; "mounting, 4 s" without a total and before the
/// first step.
std::string progress_text(std::string_view what, std::size_t done, std::size_t total, std::string_view now_at,
                          std::chrono::seconds elapsed);

class Console;

/// A progress line on stderr for work that takes over a second, drawn by a thread.
class Progress {
 public:
  struct Timing {
    std::chrono::milliseconds delay{1000};   ///< nothing is drawn before
    std::chrono::milliseconds interval{250}; ///< between two drawings
  };

  /// Draws nothing without a terminal, beside a JSON document, or when quiet.
  Progress(Console& console, std::string what, std::size_t total = 0);
  Progress(StatusLine& line, int width, std::string what, std::size_t total, Timing timing);
  ~Progress(); ///< ends the thread and erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::string_view now_at); ///< thread-safe; a new step begins
  void update(std::string_view now_at);  ///< thread-safe; the same step goes on

 private:
  void run(const std::stop_token& end);

  StatusLine& m_line;
  const int m_width; ///< of the terminal; 0: there is none
  const std::string m_what;
  const std::size_t m_total;
  const Timing m_timing;
  const std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
  std::mutex m_mutex;
  std::condition_variable_any m_end;
  std::size_t m_done = 0;
  std::string m_now_at;
  std::jthread m_thread; ///< the last member, because the thread uses all others
};

} // namespace sharefs::ui

#pragma once
// stderr as it is shared by messages and by one line that is drawn over and over. Thread-safe.
#include <cstddef>
#include <iosfwd>
#include <mutex>
#include <string_view>

namespace sharefs::ui {

class StatusLine {
 public:
  explicit StatusLine(std::ostream& err) : m_err(err) {}

  /// Text as it is, behind the status line's removal; usually whole lines.
  void print(std::string_view text);
  /// Show `text` (visible characters only) at the bottom, cut to fit a terminal of `width` columns.
  void draw(std::string_view text, int width);
  void erase();

 private:
  void erase_locked();

  std::mutex m_mutex;
  std::ostream& m_err;
  std::size_t m_drawn = 0; ///< columns that the status line covers
};

} // namespace sharefs::ui

#include "ui/status_line.hpp"

#include "base/visible.hpp"

#include <algorithm>
#include <ostream>

namespace sharefs::ui {

void StatusLine::print(std::string_view text) {
  const std::scoped_lock lock(m_mutex);
  erase_locked();
  m_err << text << std::flush;
}

void StatusLine::draw(std::string_view text, int width) {
  const std::scoped_lock lock(m_mutex);
  // The last column stays free: a terminal that wraps there would leave a line behind with each drawing.
  const auto line = fit_width(text, static_cast<std::size_t>(std::max(width - 1, 0)));
  const auto columns = display_width(line);
  const std::string rest(m_drawn > columns ? m_drawn - columns : 0, ' ');
  m_err << '\r' << line << rest << std::flush;
  m_drawn = std::max(columns, m_drawn);
}

void StatusLine::erase() {
  const std::scoped_lock lock(m_mutex);
  erase_locked();
}

void StatusLine::erase_locked() {
  if (m_drawn == 0)
    return;
  m_err << '\r' << std::string(m_drawn, ' ') << '\r' << std::flush;
  m_drawn = 0;
}

} // namespace sharefs::ui

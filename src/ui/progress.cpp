#include "ui/progress.hpp"

#include "base/visible.hpp"
#include "ui/console.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <ostream>

namespace sharefs::ui {

void StatusLine::print(std::string_view text) {
  const std::scoped_lock lock(m_mutex);
  if (m_drawn > 0)
    m_err << '\r' << std::string(m_drawn, ' ') << '\r';
  m_drawn = 0;
  m_err << text << std::flush;
}

void StatusLine::draw(std::string_view text, int width, const void* by) {
  const std::scoped_lock lock(m_mutex);
  if (by != nullptr && (m_drawers.empty() || m_drawers.back() != by))
    return;
  // The last column stays free: a terminal that wraps there would leave a line behind with each drawing.
  const auto line = fit_width(text, static_cast<std::size_t>(std::max(width - 1, 0)));
  const auto columns = display_width(line);
  const std::string rest(m_drawn > columns ? m_drawn - columns : 0, ' ');
  m_err << '\r' << line << rest << std::flush;
  m_drawn = std::max(columns, m_drawn);
}

void StatusLine::begin(const void* by) {
  const std::scoped_lock lock(m_mutex);
  m_drawers.push_back(by);
}

void StatusLine::end(const void* by) {
  const std::scoped_lock lock(m_mutex);
  std::erase(m_drawers, by);
}

std::string progress_text(std::string_view what, std::size_t done, std::size_t total, std::string_view now_at,
                          std::chrono::seconds elapsed) {
  std::string text = visible(what);
  if (total > 0 && done > 0)
    text += fmt::format(" {}/{}", done, total);
  text += fmt::format(", {} s", elapsed.count());
  if (!now_at.empty())
    text += ": " + visible(now_at);
  return text;
}

namespace {

bool draws(const ConsoleOptions& options) {
  return options.err_terminal && !options.json && !options.quiet;
}

} // namespace

Progress::Progress(Console& console, std::string what, std::size_t total)
    : Progress(console.status_line(), draws(console.options()) ? console.options().width : 0, std::move(what), total,
               Timing{}) {}

Progress::Progress(StatusLine& line, int width, std::string what, std::size_t total, Timing timing)
    : m_line(line), m_width(width), m_what(std::move(what)), m_total(total), m_timing(timing) {
  if (m_width == 0)
    return;
  m_line.begin(this);
  // Only the main thread may get signals: Ctrl-C must interrupt its waiting, not the sleep of this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    m_thread = std::jthread([this](const std::stop_token& end) {
      try {
        run(end);
      } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): the work needs no progress line
      }
    });
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): no more threads, the work goes on without the line
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  m_thread = {}; // waits for its end
  if (m_width > 0) {
    m_line.end(this);
    m_line.print();
  }
}

void Progress::advance(std::string_view now_at) {
  const std::scoped_lock lock(m_mutex);
  ++m_done;
  m_now_at = now_at;
}

void Progress::update(std::string_view now_at) {
  const std::scoped_lock lock(m_mutex);
  m_now_at = now_at;
}

void Progress::run(const std::stop_token& end) {
  std::unique_lock lock(m_mutex);
  for (auto wait = m_timing.delay; !end.stop_requested(); wait = m_timing.interval) {
    m_end.wait_for(lock, end, wait, [] { return false; });
    const auto elapsed = std::chrono::steady_clock::now() - m_begin;
    if (!end.stop_requested())
      m_line.draw(
          progress_text(m_what, m_done, m_total, m_now_at, std::chrono::duration_cast<std::chrono::seconds>(elapsed)),
          m_width, this);
  }
}

} // namespace sharefs::ui

#include "ui/live_screen.hpp"

#include "base/text.hpp"

#include <ostream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sharefs::ui {

namespace {

// xterm's, which every terminal knows that can do this at all: the other screen, the cursor, and what is to be cleared.
constexpr const char *k_enter = "\x1b[?1049h\x1b[?25l", *k_leave = "\x1b[?25h\x1b[?1049l";
constexpr const char *k_home = "\x1b[H", *k_clear_line = "\x1b[K", *k_clear_rest = "\x1b[J";

std::size_t rows() {
  constexpr std::size_t k_usual_rows = 24;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row : k_usual_rows;
}

} // namespace

LiveScreen::LiveScreen(std::ostream& out) : m_out(out) {
  enter();
}

LiveScreen::~LiveScreen() {
  leave();
}

void LiveScreen::enter() {
  if (m_entered || ::tcgetattr(STDIN_FILENO, &m_before) != 0)
    return;
  auto keys = m_before;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  m_out << k_enter << std::flush;
  m_entered = true;
}

void LiveScreen::leave() {
  if (!m_entered)
    return;
  m_out << k_leave << std::flush;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &m_before);
  m_entered = false;
}

void LiveScreen::draw(std::string_view text) {
  auto lines = split_lines(text);
  if (const auto most = rows(); lines.size() > most)
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(most) - 1, lines.end() - 1);
  m_out << k_home;
  for (std::size_t number = 0; number < lines.size(); ++number)
    m_out << (number == 0 ? "" : "\r\n") << lines[number] << k_clear_line;
  m_out << k_clear_rest << std::flush;
}

} // namespace sharefs::ui

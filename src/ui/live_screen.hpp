#pragma once
// A text that is drawn over itself, on the terminal's other screen: what was there before is there again afterwards.
#include <iosfwd>
#include <string_view>
#include <termios.h>

namespace sharefs::ui {

class LiveScreen {
 public:
  /// Keys of standard input are not shown, and come one by one.
  explicit LiveScreen(std::ostream& out);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
  void enter();
  void leave();
  /// Lines that the window has no room for are left out, but for the last one.
  void draw(std::string_view text);

 private:
  std::ostream& m_out;
  termios m_before{};
  bool m_entered = false;
};

} // namespace sharefs::ui

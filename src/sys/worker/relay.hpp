#pragma once
// Private to sys/worker: copies the streams of a worker to and from our own streams.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <array>
#include <optional>
#include <string>
#include <termios.h>
#include <vector>

namespace sharefs::sys {

/// The worker's standard streams. Each is the worker's own terminal if our stream is a terminal, otherwise a pipe.
class Relay {
 public:
  /// `user`: the owner of the terminal.
  static Result<Relay> open(uid_t user);
  /// Returns the worker's ends for descriptors 0, 1 and 2. If one is a terminal, it must become the controlling
  /// terminal of the worker's session.
  [[nodiscard]] std::array<int, 3> ends() const;
  [[nodiscard]] int terminal() const { return m_slave.get(); } ///< -1: none
  /// Copies until the worker has ended, then restores our terminal. Signals to this process are passed on to the
  /// worker.
  void copy_until_end(Child& worker);

 private:
  /// A copy in one direction.
  struct Copy {
    Fd own; ///< that one of the two descriptors that is closed at the end
    int from = -1, to = -1;
    std::string pending; ///< data that was read but not written yet
  };
  Result<void> open_terminal(uid_t user);
  Result<void> open_pipe(int stream);
  bool copy(Copy& one);
  void read_keys(Child& worker);
  void take_signals(int signals, Child& worker);
  void enter_raw();
  void leave_raw();
  void suspend(Child& worker);
  void resize() const;
  void ask_to_end(Child& worker, int signal);

  std::array<Fd, 3> m_ends; ///< the worker's pipes
  Fd m_master, m_slave;     ///< the worker's terminal
  int m_keyboard = -1;      ///< our terminal, if our standard input is one
  int m_screen = -1;        ///< our terminal, if our standard output or error is one
  Copy m_input;             ///< from our keyboard, or from our standard input
  std::vector<Copy> m_outputs;
  std::optional<termios> m_saved_settings; ///< of our terminal, while it is in raw mode
  int m_requests = 0;                      ///< how often the worker was asked to end
};

} // namespace sharefs::sys

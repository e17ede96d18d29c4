#pragma once
// Private to sys/worker: what a worker reads and writes, copied between it and our own streams.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <array>
#include <optional>
#include <string>
#include <termios.h>
#include <vector>

namespace sharefs::sys {

/// The worker's standard streams: a terminal of its own where ours is one, a pipe elsewhere.
class Relay {
 public:
  /// `user`: the owner of the terminal.
  static Result<Relay> open(uid_t user);
  /// The worker's ends, for 0, 1 and 2; a terminal among them is to control its session.
  [[nodiscard]] std::array<int, 3> ends() const;
  [[nodiscard]] int terminal() const { return m_slave.get(); } ///< -1: none
  /// Copies until the worker has ended; our terminal is as it was afterwards. Signals that this process gets go on to
  /// the worker.
  void copy_until_end(Child& worker);

 private:
  /// From a stream to another one, in one direction.
  struct Copy {
    Fd own; ///< of the two the one that is closed at the end
    int from = -1, to = -1;
    std::string waits; ///< read and not written yet
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
  int m_screen = -1;        ///< our terminal, if we write to one
  Copy m_input;             ///< of what is typed, or of our standard input
  std::vector<Copy> m_outputs;
  std::optional<termios> m_before; ///< of our terminal, while it hands on every key
  int m_asked = 0;                 ///< how often the worker was asked to end
};

} // namespace sharefs::sys

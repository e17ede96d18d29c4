#pragma once
// Ctrl-C: the running step is completed, or stopped where that is safe. The journal is closed, and no further step
// begins.

namespace sharefs::sys {

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that only set a flag. A second SIGINT ends the process at once with
/// exit code 130.
void install_interrupt_handlers();
/// True once one of these signals has been received.
bool interrupted();

/// While this object exists, an earlier Ctrl-C is ignored, so that the cleanup after a Ctrl-C can be completed. A new
/// Ctrl-C counts.
class DelayInterrupts {
 public:
  DelayInterrupts();
  ~DelayInterrupts();
  DelayInterrupts(const DelayInterrupts&) = delete;
  DelayInterrupts& operator=(const DelayInterrupts&) = delete;

 private:
  bool m_before;
};

/// Waits until the descriptor can be read or is at its end. False: Ctrl-C came first.
bool wait_for_input(int fd);

/// True if the other end of this pipe, socket or terminal is closed for good. Always false for a regular file.
bool nobody_reads(int fd);

} // namespace sharefs::sys

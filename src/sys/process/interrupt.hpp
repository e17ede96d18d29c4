#pragma once
// Ctrl-C: the running step goes to its end, or is stopped where that is safe; the journal is closed, and no further
// step begins.

namespace sharefs::sys {

/// Install handlers for SIGINT, SIGTERM and SIGHUP that only set a flag; a second SIGINT ends the process at once
/// (130).
void install_interrupt_handlers();
/// One of these signals has come.
bool interrupted();

/// As long as it lives a Ctrl-C of before does not count: what clears up after one goes to its end. Another one does.
class DelayInterrupts {
 public:
  DelayInterrupts();
  ~DelayInterrupts();
  DelayInterrupts(const DelayInterrupts&) = delete;
  DelayInterrupts& operator=(const DelayInterrupts&) = delete;

 private:
  bool m_before;
};

/// Waits until something can be read from a descriptor, or it has ended. False: Ctrl-C came first.
bool wait_for_input(int fd);

/// The other end of this pipe, socket or terminal is closed for good. A file that cannot be written has no other end.
bool nobody_reads(int fd);

} // namespace sharefs::sys

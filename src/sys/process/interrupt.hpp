#pragma once
// Ctrl-C: the running step goes to its end, or is stopped where that is safe; the journal is closed, and no further
// step begins.

namespace sharefs::sys {

/// Install handlers for SIGINT, SIGTERM and SIGHUP that only set a flag; a second SIGINT ends the process at once
/// (130).
void install_interrupt_handlers();
/// One of these signals has come.
bool interrupted();

} // namespace sharefs::sys

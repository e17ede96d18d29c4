#pragma once
#include <exception>
#include <string>

namespace sharefs {

/// Returns the message of an exception that nobody has caught. Exceptions of libraries never leave the file that calls
/// them, so the machine has run out of memory, processes or threads, or sharefs has a bug.
std::string reason_of(const std::exception_ptr& thrown);

} // namespace sharefs

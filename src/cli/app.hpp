#pragma once
#include "cli/context.hpp"

#include <exception>
#include <string>

namespace sharefs::cli {

/// The whole program: parse, make the context, run the command, print the envelope. Returns the exit code.
int run(const Argv& argv, Host& host);

/// The message of an exception that nobody has caught. The libraries' exceptions never leave the file that calls them,
/// so the machine has run out of memory, processes or threads, or sharefs has a mistake.
std::string reason_of(const std::exception_ptr& thrown);

/// run() on the real machine.
int main(int argc, char** argv);

} // namespace sharefs::cli

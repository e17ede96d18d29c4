#pragma once
#include "cli/context.hpp"

#include <exception>
#include <string>

namespace sharefs::cli {

/// The whole program: parse, make the context, run the command, print the envelope. Returns the exit code.
int run(const Argv& argv, Host& host);

/// What an exception that nobody expected is about. Ours never leave the file that throws them: this is memory,
/// processes or threads that the machine does not have, or a mistake in sharefs.
std::string reason_of(const std::exception_ptr& thrown);

/// run() on the real machine.
int main(int argc, char** argv);

} // namespace sharefs::cli

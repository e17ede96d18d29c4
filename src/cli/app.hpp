#pragma once
#include "cli/context.hpp"

namespace sharefs::cli {

/// The whole program: parse, make the context, run the command, print the envelope. Returns the exit code.
int run(const Argv& argv, Host& host);

/// run() on the real machine.
int main(int argc, char** argv);

} // namespace sharefs::cli

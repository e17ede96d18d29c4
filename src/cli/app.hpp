#pragma once
#include "cli/context.hpp"

#include <optional>
#include <string>

namespace sharefs::cli {

/// Runs the whole program: parses the command line, makes the context, runs the command, prints the envelope. Returns
/// the exit code.
int run(const Argv& argv, Host& host);

/// Runs `sharefs --frame PROTOCOL:NAME[:SECONDS] COMMAND`, as another machine's sharefs calls this one
/// (fleet/frames.hpp). A first frame names version and protocol, then frames with the JSON document of the command
/// follow. With another protocol nothing is run. After SECONDS timeout(1) ends the command. Returns the exit code of
/// the command; nullopt: the command line has no --frame.
std::optional<int> run_framed(const Argv& argv, Host& host);

/// Calls run() on the real machine.
int main(int argc, char** argv);

} // namespace sharefs::cli

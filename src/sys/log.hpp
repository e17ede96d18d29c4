#pragma once

namespace sharefs::sys {

/// Makes spdlog write to stderr at debug level (`--verbose`), or turns it off. Called once, by the command line.
void set_verbose(bool verbose);

} // namespace sharefs::sys

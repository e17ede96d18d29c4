#pragma once

namespace sharefs::sys {

/// spdlog to stderr at debug level (`--verbose`), else only errors. Called once, by the command line.
void set_verbose(bool verbose);

} // namespace sharefs::sys

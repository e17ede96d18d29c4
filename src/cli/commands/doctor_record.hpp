#pragma once
// doctor --record, --replay: the host of an examination is this one, with all answers written down, or what was.
#include "cli/commands/doctor_parts.hpp"

namespace sharefs::cli {

/// As examine(), by the options `record`, `anonymize` and `replay`. A recording's own time and seconds count, which
/// become those of `how`. Errors: `usage`, `conflict` (FILE is there), `config` (FILE is no recording), those of files.
Result<std::vector<Part>> examine_recorded(Context& context, const Arguments& arguments, Examination& how);

} // namespace sharefs::cli

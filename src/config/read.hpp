#pragma once
// A tree against the key table: what is right goes into the value, what is wrong is a problem with its place.
#include "config/source.hpp"
#include "config/tree.hpp"

namespace sharefs::config {

Config read_config(const Node& root, const Source& source, Problems& problems);

} // namespace sharefs::config

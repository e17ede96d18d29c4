#pragma once
// Checks a tree against the key table: right values are stored in the Config, wrong ones become problems with their
// place.
#include "config/source.hpp"
#include "config/tree.hpp"

namespace sharefs::config {

Config read_config(const Node& root, const Source& source, Problems& problems);

} // namespace sharefs::config

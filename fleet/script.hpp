#pragma once
// Scripts of ours for a node's own shell, where no sharefs is yet or none is needed. They print lines behind a mark,
// since login shells may print, too; and they have no single quotes, being a word within a word for two shells.
#include "fleet/outcome.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::fleet {

/// Shell functions: `say KEY TEXT`, `no TEXT` (failed, and the end), `end_well TEXT` (TEXT is what was changed).
extern const std::string_view k_script_functions;

/// NAME=value for a shell.
std::string assign(std::string_view name, const std::string& value);

/// What a script said, in its order: the key, the text.
std::vector<std::pair<std::string, std::string>> said_lines(std::string_view out);

/// By what it said at its end, or by what ssh said instead.
Outcome script_outcome(const Node& node, std::string_view out, const Ended& ended);

} // namespace sharefs::fleet

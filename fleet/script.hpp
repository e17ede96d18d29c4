#pragma once
// Shell scripts for nodes, for work that needs no sharefs there. Their output lines begin with a mark, because login
// shells may print, too. They contain no single quotes, because they are quoted twice, for two shells.
#include "fleet/outcome.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

/// Shell functions: `say KEY TEXT` reports; `no TEXT` reports a failure and ends; `end_well TEXT` ends, and TEXT is the
/// change.
extern const std::string_view k_script_functions;

/// Returns NAME=value for a shell.
std::string assign(std::string_view name, const std::string& value);

/// The reports of a script: the texts of each key in their order.
using Reports = std::map<std::string, std::vector<std::string>>;
Reports parse_reports(std::string_view out);
/// Returns the last text of a key; empty if there is none.
std::string last_report(const Reports& reports, const std::string& key);

/// Decides the outcome from the script's last report, or from ssh's error messages.
Outcome script_outcome(const Node& node, std::string_view out, const Ended& ended);

} // namespace sharefs::fleet

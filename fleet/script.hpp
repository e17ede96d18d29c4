#pragma once
// Shell scripts for nodes (fleet/scripts), for work that needs no sharefs there. Their output lines begin with a mark,
// because login shells may print, too.
#include "fleet/outcome.hpp"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::fleet {

extern const char k_mirror_script[], k_push_script[], k_trust_script[]; ///< scripts/mirror.sh and so on

/// Returns a script: the functions of scripts/report.sh, then a line NAME=value for each variable, then `body`.
std::string script_of(const std::vector<std::pair<std::string_view, std::string>>& variables, std::string_view body);

/// The reports of a script: the texts of each key in their order.
using Reports = std::map<std::string, std::vector<std::string>>;
Reports parse_reports(std::string_view out);
/// Returns the last text of a key; empty if there is none.
std::string last_report(const Reports& reports, const std::string& key);

/// Decides the outcome from the script's last report, or from ssh's error messages.
Outcome script_outcome(const Node& node, std::string_view out, const Ended& ended);

} // namespace sharefs::fleet

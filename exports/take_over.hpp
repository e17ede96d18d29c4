#pragma once
// Lines of other exports files move to sharefs' own, and nothing else changes: not what is exported, and no other byte.
#include "exports/plan_export.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

/// `text` with the lines commented out whose directories stand at `lines`, continuation lines with them; nullopt: one
/// of them does not begin a line of the file.
std::optional<std::string> comment_out(std::string_view text, const std::set<Origin>& lines);

struct TakeOver {
  Request request; ///< the exports whose directories stand in files of others, and the files without them
  Actual actual;   ///< the host as those files will be
  Diagnoses found; ///< why it cannot be done: SF151, SF152, SF153
};
/// `texts`: of the files of others, by name.
TakeOver take_over(const Actual& actual, const Request& wanted, const std::map<std::string, std::string>& texts,
                   const Ask& ask);

/// What is exported otherwise in `after` than in `before` (both with resolved directories): SF151. Rights are compared
/// by meaning; of networks, wildcards and netgroups the order counts, too, since mountd takes the first that fits.
/// `will`: it has not happened yet.
Diagnoses changes(const std::vector<Export>& before, const std::vector<Export>& after, const HostFacts& facts,
                  bool will);

} // namespace sharefs::exports

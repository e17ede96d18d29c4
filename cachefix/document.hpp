#pragma once
// `sharefs run --json`: the fields of docs/run.schema.json.
#include "cachefix/sanitize.hpp"

#include <nlohmann/json_fwd.hpp>

namespace sharefs::cachefix {

/// argv, final_argv, chain, script, changes, kept, environment; `scripts` when there are several; final_argv_base64
/// when a word is not UTF-8 (which stands as U+FFFD in all others).
nlohmann::ordered_json document(const Argv& argv, const Sanitized& decision);

/// What is said about a decision: `--cache_dir /share/c -> /var/cache/...: REASON`, or why something was left.
std::string describe(const Decision& decision);
/// One line for each change, and one for all that nobody named: defaults that lie on shared storage.
std::vector<std::string> describe_changes(const Sanitized& decided);

} // namespace sharefs::cachefix

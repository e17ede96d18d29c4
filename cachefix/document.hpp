#pragma once
// `sharefs run --json`: the fields of docs/run.schema.json.
#include "cachefix/sanitize.hpp"

#include <nlohmann/json_fwd.hpp>

namespace sharefs::cachefix {

/// argv, final_argv, chain, script, changes, kept, environment; `scripts` when there are several; final_argv_base64
/// when a word is not UTF-8 (which stands as U+FFFD in all others).
nlohmann::ordered_json document(const Argv& argv, const Sanitized& decision);

/// One line per change: `--cache_dir /share/c -> /var/cache/...: REASON`.
std::string describe(const Change& change);
std::string describe(const Kept& kept);

} // namespace sharefs::cachefix

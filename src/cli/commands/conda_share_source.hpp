#pragma once
// Which environment `conda share` is to take.
#include "cli/commands/conda_support.hpp"
#include "conda/share.hpp"

namespace sharefs::cli {

/// What lies at `word`, or has lain there before an exchange that was cut off. `target`: STORE/ENV.
Result<conda::Source> source_at(Context& context, const std::string& word, const std::string& target);

/// The one directory of that name in the homes of `conda.homes`. `usage`: there are several.
Result<conda::Source> find_source(Context& context, const StoreName& where, const std::string& target);

} // namespace sharefs::cli

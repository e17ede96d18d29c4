#pragma once
// What docs/ says of the keys, made from their table. Where a document is not as it is made, SHAREFS_GOLDEN_UPDATE=1
// writes it.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sharefs::config {

nlohmann::ordered_json schema(); ///< JSON Schema 2020-12: docs/sharefs.schema.json
std::string keys_markdown();     ///< the table of docs/configuration.md

} // namespace sharefs::config

#pragma once
// Private to plan: JSON of single values, and the way back for whole plans (only the journal reads plans).
#include "plan/plan.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::plan {

using Json = nlohmann::ordered_json;

/// A JSON string for valid UTF-8, else {"base64": "..."}: paths and file contents are bytes, and undo needs every one.
Json bytes_to_json(std::string_view bytes);
/// Inverse of bytes_to_json; nullopt for anything else.
std::optional<std::string> bytes_from_json(const Json& json);
/// One line of text; never throws.
std::string dump_line(const Json& json);
/// nullopt for text that is not one JSON document.
std::optional<Json> parse_json(const std::string& text);

/// Inverse of to_json(const Plan&).
Result<Plan> plan_from_json(const Json& json);
std::optional<Outcome> outcome_from(std::string_view name);

} // namespace sharefs::plan

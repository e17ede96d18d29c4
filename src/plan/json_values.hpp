#pragma once
// Private to plan: JSON of single values, and the way back for whole plans (only the journal reads plans).
#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "plan/plan.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::plan {

using Json = nlohmann::ordered_json;

/// One line of text; never throws.
std::string dump_line(const Json& json);
/// nullopt for text that is not one JSON document.
std::optional<Json> parse_json(const std::string& text);

/// Inverse of to_json(const Plan&).
Result<Plan> plan_from_json(const Json& json);
std::optional<Outcome> outcome_from(std::string_view name);

} // namespace sharefs::plan

#pragma once
// Private to plan: writing and reading JSON. Only the journal reads plans from JSON.
#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "plan/plan.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::plan {

using Json = nlohmann::ordered_json;

/// Returns the JSON as one line of text; never throws.
std::string dump_line(const Json& json);
/// Reads one JSON document; nullopt if the text is something else.
std::optional<Json> parse_json(const std::string& text);

/// Reads what to_json(const Plan&) has written.
Result<Plan> plan_from_json(const Json& json);
std::optional<Outcome> outcome_from(std::string_view name);

} // namespace sharefs::plan

#include "plan/json_values.hpp"

#include "base/json.hpp"

namespace sharefs::plan {

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Json> parse_json(const std::string& text) {
  // In a plan an action is the object with the most members.
  constexpr JsonLimits k_limits{.bytes = 256U << 20U, .values = 20'000'000, .members = 1000};
  auto json = read_json<Json>(text, k_limits);
  return json ? std::optional(std::move(*json)) : std::nullopt;
}

} // namespace sharefs::plan

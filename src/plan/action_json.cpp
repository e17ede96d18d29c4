#include "base/json_fields.hpp"
#include "plan/action_fields.hpp"
#include "plan/json_values.hpp"

#include <algorithm>

namespace sharefs::plan {

namespace {

template <std::size_t I = 0> Result<Action> read_kind(std::size_t index, const Json& json) {
  if constexpr (I < std::variant_size_v<Action>) {
    if (index != I)
      return read_kind<I + 1>(index, json);
    std::variant_alternative_t<I, Action> action;
    const auto refuse = [](const std::string& why) {
      return fail(ErrorCode::failed, "a `" + std::string(k_kinds[I]) + "` action " + why);
    };
    if (const char* wrong = read_fields(json, action); wrong != nullptr)
      return refuse("has a malformed field `" + std::string(wrong) + "`");
    if constexpr (requires { action.before.has_value() && action.after.has_value(); })
      if (!action.before && !action.after)
        return refuse("says neither what is there before nor what after");
    if (std::ranges::any_of(touched_paths(action), &std::string::empty))
      return refuse("lacks a path");
    return Action(std::move(action));
  }
  return fail(ErrorCode::failed, "unknown kind of action");
}

} // namespace

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Json> parse_json(const std::string& text) {
  // In a plan an action is the object with the most members.
  constexpr JsonLimits k_limits{.bytes = 256U << 20U, .values = 20'000'000, .members = 1000};
  auto json = read_json<Json>(text, k_limits);
  return json ? std::optional(std::move(*json)) : std::nullopt;
}

Json to_json(const Action& action) {
  Json json{{"kind", k_kinds[action.index()]}};
  std::visit([&json](const auto& alternative) { add_fields(json, alternative, JsonTexts::exact); }, action);
  return json;
}

Result<Action> action_from_json(const Json& json) {
  const auto kind = text_in(json, "kind");
  if (kind.empty())
    return fail(ErrorCode::failed, "an action has no `kind`");
  const auto found = std::ranges::find(k_kinds, kind);
  if (found == k_kinds.end())
    return fail(ErrorCode::failed, "unknown kind of action `" + kind + "`");
  return read_kind(static_cast<std::size_t>(found - k_kinds.begin()), json);
}

} // namespace sharefs::plan

#pragma once
// JSON that somebody else may have written. It is measured before it is parsed: parsing takes many times the memory of
// the text, and functions that call themselves work through deep values.
#include "base/result.hpp"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sharefs {

struct JsonLimits {
  std::size_t bytes;
  std::size_t depth = 32;         ///< of nested brackets
  std::size_t values = 2'000'000; ///< elements of all arrays and members of all objects together
  /// Of one object. A type that keeps the order of members looks through all of them for each.
  std::size_t members = std::numeric_limits<std::size_t>::max();
};

/// The limit that the text exceeds: "is larger than 4.0 MiB"; empty: it keeps within the limits. Takes one pass.
std::string json_excess(std::string_view text, const JsonLimits& limits);

/// `failed`: more than the limits allow, or no JSON. The message goes on after the name of what was read.
template <class Json = nlohmann::json> Result<Json> read_json(std::string_view text, const JsonLimits& limits) {
  if (auto excess = json_excess(text, limits); !excess.empty())
    return fail(ErrorCode::failed, std::move(excess));
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return fail(ErrorCode::failed, "is no JSON that can be read");
  return json;
}

/// What an object has under a name; null where it has none, or is no object. nlohmann's own look-ups throw where others
/// have written something else.
template <class Json> const Json& member(const Json& object, const char* name) {
  static const Json k_null;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? k_null : *found;
}

/// The same as text; "" for anything else.
template <class Json> const std::string& text_in(const Json& object, const char* name) {
  static const std::string k_none;
  const auto& found = member(object, name);
  return found.is_string() ? found.template get_ref<const std::string&>() : k_none;
}

} // namespace sharefs

#pragma once
// JSON that another program may have written. Its size and depth are checked before it is parsed, because parsing takes
// many times the memory of the text, and recursive functions work through deep values.
#include "base/result.hpp"
#include "base/visible.hpp"

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
  /// The most members of one object. A type that keeps the order of its members searches all of them for each new one.
  std::size_t members = std::numeric_limits<std::size_t>::max();
};

/// Returns the limit that the text exceeds, such as "is larger than 4.0 MiB"; "" where it exceeds none. Takes one pass.
std::string find_json_excess(std::string_view text, const JsonLimits& limits);

/// Returns an error of code `failed` where the text exceeds the limits or is not JSON. The message has no subject: the
/// caller puts the name of the file or stream in front.
template <class Json = nlohmann::json> Result<Json> read_json(std::string_view text, const JsonLimits& limits) {
  if (auto excess = find_json_excess(text, limits); !excess.empty())
    return fail(ErrorCode::failed, std::move(excess));
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return fail(ErrorCode::failed, "is no JSON that can be read");
  return json;
}

/// Returns the text of JSON that a person may see: a terminal would obey a control character of a name in it.
template <class Json> std::string text_of_json(const Json& json, int indent = -1) {
  return visible_json(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

/// Returns the member `name` of an object; null where there is none, or where `object` is not an object. The look-ups
/// of nlohmann throw where another program has written a value of another type.
template <class Json> const Json& member(const Json& object, const char* name) {
  static const Json k_null;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? k_null : *found;
}

/// Returns the member `name` as text; "" where it is missing or not a string.
template <class Json> const std::string& text_in(const Json& object, const char* name) {
  static const std::string k_none;
  const auto& found = member(object, name);
  return found.is_string() ? found.template get_ref<const std::string&>() : k_none;
}

} // namespace sharefs

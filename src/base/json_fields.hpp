#pragma once
// Structs as JSON objects, by their `fields` (base/fields.hpp). Permission bits (fields whose names begin with `mode`)
// are written as octal text. A struct inside a struct is left out where all its fields have their defaults. An
// enumerator is written as the text that `to_string` has for it.
#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

/// Returns a JSON string for valid UTF-8, else {"base64": "..."}: paths and contents of files are bytes, and no byte
/// may be lost.
nlohmann::ordered_json bytes_to_json(std::string_view bytes);
/// Reads what bytes_to_json() has written; nullopt for anything else.
std::optional<std::string> bytes_from_json(const nlohmann::ordered_json& json);

/// How texts are written: for people (U+FFFD in place of bytes that are not UTF-8), or so that every byte can be read
/// back.
enum class JsonTexts { for_people, exact };

/// True for the name of a field with permission bits.
inline bool is_mode(std::string_view name) {
  return name.starts_with("mode");
}

template <class T> nlohmann::ordered_json json_of(const T& value, JsonTexts texts = JsonTexts::for_people);

/// Adds the fields of `value` to the object.
template <HasFields T> void add_fields(nlohmann::ordered_json& object, const T& value, JsonTexts texts) {
  const auto add = [&]<class V>(const char* name, const V& field) {
    using Plain = std::remove_const_t<V>;
    if constexpr (HasFields<const Plain>) {
      if (field == Plain{})
        return;
      if (*name == '\0')
        return add_fields(object, field, texts);
    }
    if constexpr (std::same_as<Plain, std::uint32_t> || std::same_as<Plain, std::optional<std::uint32_t>>)
      if (const std::optional<std::uint32_t> mode = field; mode && is_mode(name)) {
        object[name] = format_mode(*mode);
        return;
      }
    object[name] = json_of(field, texts);
  };
  std::apply([&](const auto&... field) { (add(field.name, field.value), ...); }, fields(value));
}

template <class T> nlohmann::ordered_json json_of(const T& value, JsonTexts texts) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return texts == JsonTexts::exact ? bytes_to_json(value) : nlohmann::ordered_json(to_utf8(value));
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value, texts) : nlohmann::ordered_json(nullptr);
  } else if constexpr (requires { value.count(); }) {
    return value.count();
  } else if constexpr (requires { value.begin(); }) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& element : value)
      list.push_back(json_of(element, texts));
    return list;
  } else if constexpr (HasFields<const T>) {
    auto object = nlohmann::ordered_json::object();
    add_fields(object, value, texts);
    return object;
  } else {
    return to_string(value);
  }
}

template <class T> bool value_from_json(const nlohmann::ordered_json& json, T& value);

/// Reads what json_of() has written with JsonTexts::exact. A missing field keeps its default, so that JSON of an
/// earlier version stays readable. Returns the name of the first malformed field; nullptr if there is none.
template <HasFields T> const char* read_fields(const nlohmann::ordered_json& object, T& value) {
  const char* wrong = nullptr;
  const auto read = [&]<class V>(const char* name, V& field) {
    if (wrong != nullptr)
      return;
    if constexpr (HasFields<V>)
      if (*name == '\0') {
        wrong = read_fields(object, field);
        return;
      }
    const auto found = object.find(name);
    if (found == object.end())
      return;
    if constexpr (std::same_as<V, std::uint32_t> || std::same_as<V, std::optional<std::uint32_t>>)
      if (is_mode(name) && found->is_string()) {
        if (const auto mode = parse_mode(found->template get<std::string>()); mode)
          field = std::uint32_t{*mode};
        else
          wrong = name;
        return;
      }
    if (!value_from_json(*found, field))
      wrong = name;
  };
  std::apply([&](auto&&... field) { (read(field.name, field.value), ...); }, fields(value));
  return wrong;
}

template <class T> bool value_from_json(const nlohmann::ordered_json& json, T& value) {
  if constexpr (std::same_as<T, bool>) {
    if (json.is_boolean())
      value = json.get<bool>();
    return json.is_boolean();
  } else if constexpr (std::integral<T>) {
    // The parser stores a non-negative number as unsigned; a literal in C++ code may be a signed one.
    if (!json.is_number_integer() || (!json.is_number_unsigned() && json.get<std::int64_t>() < 0) ||
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      return false;
    value = json.get<T>();
    return true;
  } else if constexpr (std::same_as<T, std::string>) {
    auto bytes = bytes_from_json(json);
    if (bytes)
      value = std::move(*bytes);
    return bytes.has_value();
  } else if constexpr (requires {
                         value.emplace();
                         value.has_value();
                       }) {
    value.reset();
    return json.is_null() || value_from_json(json, value.emplace());
  } else if constexpr (requires { value.count(); }) {
    if (json.is_number_integer())
      value = T(json.get<std::int64_t>());
    return json.is_number_integer();
  } else if constexpr (requires { value.emplace_back(); }) {
    value.clear();
    return json.is_array() && std::ranges::all_of(json, [&value](const nlohmann::ordered_json& element) {
             return value_from_json(element, value.emplace_back());
           });
  } else {
    return json.is_object() && read_fields(json, value) == nullptr;
  }
}

/// Reads a struct from the text of a file; nullopt if it is no JSON of this struct.
template <HasFields T> std::optional<T> from_json(std::string_view text, std::size_t most_bytes) {
  const auto json = read_json<nlohmann::ordered_json>(text, {.bytes = most_bytes});
  std::optional<T> value(std::in_place);
  return json && value_from_json(*json, *value) ? value : std::nullopt;
}

} // namespace sharefs

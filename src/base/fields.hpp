#pragma once
// The fields of a struct with their names, listed once. Code that goes through a struct field by field uses this list:
// bytes between processes (sys/process/wire.hpp) and JSON (base/json_fields.hpp). A struct takes part if a function
// `fields` stands beside it, which returns its fields for reading and for writing alike:
//   template <FieldsOf<Hash> H> auto fields(H& h) { return named("high", h.high, "low", h.low); }
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sharefs {

/// S is `T` or `const T`.
template <class S, class T>
concept FieldsOf = std::same_as<std::remove_const_t<S>, T>;

template <class T> struct Field {
  /// The name in JSON; "": the field is a struct, and its fields are written among those of the outer struct.
  const char* name;
  T& value;
};

template <class Words, std::size_t... Index> auto fields_of_words(Words words, std::index_sequence<Index...>) {
  return std::tuple{Field{std::get<2 * Index>(words), std::get<2 * Index + 1>(words)}...};
}

/// The fields of names and values in turns. All are taken at once: to add one after another to a tuple would take the
/// compiler seconds.
template <class... Words> auto named(Words&&... words) {
  return fields_of_words(std::forward_as_tuple(words...), std::make_index_sequence<sizeof...(Words) / 2>());
}

/// A struct that has a function `fields`.
template <class T>
concept HasFields = requires(T& value) { fields(value); };

} // namespace sharefs

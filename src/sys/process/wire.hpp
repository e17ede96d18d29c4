#pragma once
// The format of values on the pipe between sharefs and its own forked children (same binary, same machine). All of them
// use it. A struct is written field by field, in the order of its function `fields` (base/fields.hpp).
#include "base/fields.hpp"
#include "base/result.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sharefs::sys {

template <class T>
concept WireNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept IsResult = std::same_as<T, Result<typename T::value_type>>;

class WireWriter {
 public:
  template <class T> WireWriter& put(const T& value) {
    if constexpr (WireNumber<T>) {
      m_bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      const std::string_view text = value;
      put(static_cast<std::uint64_t>(text.size()));
      m_bytes.append(text);
    } else if constexpr (IsResult<T>) {
      put(value.has_value());
      if (!value)
        put(value.error());
      else if constexpr (!std::is_void_v<typename T::value_type>)
        put(*value);
    } else if constexpr (requires { value.has_value(); }) {
      put(value.has_value());
      if (value)
        put(*value);
    } else if constexpr (requires { value.begin(); }) {
      put(static_cast<std::uint64_t>(value.size()));
      for (const auto& element : value)
        put(element);
    } else if constexpr (requires { value.count(); }) {
      put(value.count());
    } else {
      std::apply([this](const auto&... field) { (this->put(field.value), ...); }, fields(value));
    }
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }
  /// Returns the bytes after their length, so that a reader knows when the message is complete.
  [[nodiscard]] std::string framed() const { return WireWriter().put(m_bytes).m_bytes; }

 private:
  std::string m_bytes;
};

/// Reading past the end returns zeros and empty values, and ok() is false from then on. A length or a count that is
/// larger than the remaining bytes allocates nothing.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : m_bytes(bytes) {}

  template <class T> T get() {
    T value{};
    get(value);
    return value;
  }
  template <class T> void get(T& value) {
    if constexpr (std::same_as<T, bool>) {
      value = get<std::uint8_t>() != 0; // a bool must not be copied from a byte other than 0 or 1
    } else if constexpr (WireNumber<T>) {
      if (m_bytes.size() < sizeof value) {
        m_ok = false;
        return;
      }
      std::copy_n(m_bytes.begin(), sizeof value, reinterpret_cast<char*>(&value));
      m_bytes.remove_prefix(sizeof value);
    } else if constexpr (std::same_as<T, std::string>) {
      value = text();
    } else if constexpr (IsResult<T>) {
      if (!get<bool>())
        value = fail(get<Error>());
      else if constexpr (!std::is_void_v<typename T::value_type>)
        get(*value);
    } else if constexpr (requires { value.has_value(); }) {
      if (get<bool>())
        get(value.emplace());
    } else if constexpr (requires { value.emplace_back(); }) {
      const auto count = get<std::uint64_t>();
      if (count > m_bytes.size())
        m_ok = false;
      for (std::uint64_t i = 0; i < count && m_ok; ++i)
        get(value.emplace_back());
    } else if constexpr (requires { value.count(); }) {
      value = T(get<typename T::rep>());
    } else {
      std::apply([this](const auto&... field) { (this->get(field.value), ...); }, fields(value));
    }
  }
  std::string_view text() {
    const auto size = get<std::uint64_t>();
    if (!m_ok || size > m_bytes.size()) {
      m_ok = false;
      return {};
    }
    const std::string_view result = m_bytes.substr(0, static_cast<std::size_t>(size));
    m_bytes.remove_prefix(static_cast<std::size_t>(size));
    return result;
  }
  [[nodiscard]] bool ok() const { return m_ok; }
  [[nodiscard]] bool at_end() const { return m_bytes.empty(); }

 private:
  std::string_view m_bytes;
  bool m_ok = true;
};

} // namespace sharefs::sys

#pragma once
// Values as bytes on the pipe between sharefs and its own forked children (same binary, same machine).
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace sharefs::sys {

class WireWriter {
 public:
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  WireWriter& put(T value) {
    m_bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  WireWriter& put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    m_bytes.append(text);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }
  /// The bytes preceded by their length, so that a reader knows when it has them all.
  [[nodiscard]] std::string framed() const { return WireWriter().put(std::string_view(m_bytes)).m_bytes; }

 private:
  std::string m_bytes;
};

/// Reading past the end gives zeros and empty texts, and ok() is false from then on.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : m_bytes(bytes) {}
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  T get() {
    T value{};
    if (m_bytes.size() < sizeof value) {
      m_ok = false;
      return value;
    }
    std::memcpy(&value, m_bytes.data(), sizeof value);
    m_bytes.remove_prefix(sizeof value);
    return value;
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

#pragma once
// XDR (RFC 4506): big-endian words, padded texts.
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <string_view>

namespace sharefs::sys {

class XdrWriter {
 public:
  XdrWriter& word(std::uint32_t value) {
    const std::uint32_t network = htonl(value);
    m_bytes.append(reinterpret_cast<const char*>(&network), sizeof network);
    return *this;
  }
  XdrWriter& text(std::string_view value) {
    word(static_cast<std::uint32_t>(value.size())).raw(value);
    m_bytes.append((4 - value.size() % 4) % 4, '\0');
    return *this;
  }
  XdrWriter& raw(std::string_view bytes) {
    m_bytes.append(bytes);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }

 private:
  std::string m_bytes;
};

/// Past the end or past a bound all is zero or empty, and ok() is false from then on.
class XdrReader {
 public:
  explicit XdrReader(std::string_view bytes) : m_rest(bytes) {}

  std::uint32_t word() {
    std::uint32_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value)
      std::memcpy(&value, bytes.data(), sizeof value);
    return ntohl(value);
  }
  std::string_view text(std::size_t at_most) {
    const std::size_t size = word();
    if (size > at_most)
      return fail();
    const std::string_view padded = take((size + 3) / 4 * 4);
    return padded.substr(0, size);
  }
  /// The "one more" before each entry of a list, the "it follows" before what may be missing.
  bool more() {
    const std::uint32_t value = word();
    if (value > 1)
      fail();
    return m_ok && value == 1;
  }
  [[nodiscard]] bool ok() const { return m_ok; }
  [[nodiscard]] std::string_view rest() const { return m_rest; }

 private:
  std::string_view fail() {
    m_ok = false;
    return m_rest = {};
  }
  std::string_view take(std::size_t size) {
    if (size > m_rest.size())
      return fail();
    const std::string_view taken = m_rest.substr(0, size);
    m_rest.remove_prefix(size);
    return taken;
  }

  std::string_view m_rest;
  bool m_ok = true;
};

} // namespace sharefs::sys

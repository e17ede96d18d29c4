#pragma once
// SHA-256, the checksum of conda's records.
#include <memory>
#include <string>
#include <string_view>

struct SHA256state_st; // OpenSSL's

namespace sharefs::sys {

/// The checksum of a content that is added in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// Returns 64 hexadecimal digits in lower case. It may be called only once.
  std::string hex();

 private:
  struct Free {
    void operator()(SHA256state_st* state) const;
  };
  std::unique_ptr<SHA256state_st, Free> m_state;
};

std::string sha256(std::string_view bytes);

} // namespace sharefs::sys

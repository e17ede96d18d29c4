// Uses the deprecated functions of OpenSSL for a single algorithm. Only their code is linked in, so that no launch has
// to load a library of 5 MB.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "sys/fs/sha256.hpp"

#include <array>
#include <fmt/format.h>
#include <openssl/sha.h>

namespace sharefs::sys {

void Sha256::Free::operator()(SHA256state_st* state) const {
  delete state; // NOLINT: the type is complete here only
}

Sha256::Sha256() : m_state(new SHA256state_st) {
  SHA256_Init(m_state.get());
}

void Sha256::add(std::string_view bytes) {
  SHA256_Update(m_state.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), m_state.get());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

} // namespace sharefs::sys

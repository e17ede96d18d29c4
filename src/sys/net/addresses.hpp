#pragma once
// Resolves host names to addresses.
#include "base/result.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

inline constexpr std::size_t k_max_addresses = 8; ///< per host name

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text; ///< "192.168.16.1", "fd00::1"
};

/// Returns the address as text, such as "192.168.16.1"; empty if it is not an IPv4 or IPv6 address.
std::string numeric_address(const sockaddr& address, socklen_t size);

/// Reads a numeric address (IPv6 with or without brackets); nullopt if the text is not one. No name service is asked.
std::optional<Address> read_address(const std::string& host);

/// Returns the addresses of a host name or a numeric address, in getaddrinfo(3)'s order, or the error number of that
/// function (EAI_NONAME: there is no such host). The name service can block for minutes.
tl::expected<std::vector<Address>, int> resolve_host(const std::string& host);

/// Does the same in a child without privileges, because a name service also runs foreign code; returns texts. Errors:
/// `not_found`, `timeout`, `config` (with the message of the name service), or why it could not be asked.
Result<std::vector<std::string>> resolve_in_child(const std::string& host, std::chrono::milliseconds deadline);

} // namespace sharefs::sys

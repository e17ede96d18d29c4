#pragma once
// Names of hosts and their addresses.
#include "base/result.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

inline constexpr std::size_t k_max_addresses = 8; ///< of one name

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text; ///< "192.168.16.1", "fd00::1"
};

/// "192.168.16.1" and the like; empty for what is no address of the Internet.
std::string numeric_address(const sockaddr& address, socklen_t size);

/// The address that a text (IPv6 with or without brackets) stands for; nullopt: it is none. No name service is asked.
std::optional<Address> read_address(const std::string& host);

/// The addresses of a host name or of an address, in getaddrinfo(3)'s order, or that function's error number
/// (EAI_NONAME: there is no such host). The name service can block for minutes.
tl::expected<std::vector<Address>, int> resolve_host(const std::string& host);

/// The same as texts, by a child without privileges, since a name service also runs code of others. Errors:
/// `not_found`, `timeout`, `config` (what the name service says), or why it could not be asked.
Result<std::vector<std::string>> resolve_in_child(const std::string& host, std::chrono::milliseconds deadline);

} // namespace sharefs::sys

#pragma once
// Names to addresses, and TCP connections, each with a deadline.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace sharefs::sys {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text; ///< "192.168.16.1", "fd00::1"
};

/// All addresses of a host name or of an address (IPv6 with or without brackets), in getaddrinfo(3)'s order. The name
/// service is asked in a child, because it can block for minutes. Errors: `not_found`, `timeout`, `failed`.
Result<std::vector<Address>> resolve_host(const std::string& host, Deadline deadline);

struct Connection {
  Fd fd;                 ///< non-blocking; empty on failure
  std::size_t index = 0; ///< of the address that answered
  int error_number = 0;  ///< of the first address if none did; ETIMEDOUT when the deadline passed
};

/// Connect to all addresses at once and take the first that accepts. `reserved` binds a port below 1024 if we may:
/// a `secure` export asks for one.
Connection connect_tcp(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                       bool reserved = false);

} // namespace sharefs::sys

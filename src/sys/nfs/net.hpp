#pragma once
// Names to addresses, and TCP connections with a deadline; for the child that asks a server.
#include "sys/nfs/rpc.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace sharefs::sys {

inline constexpr std::size_t k_max_addresses = 8; ///< of one name, to which we connect at once

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text; ///< "192.168.16.1", "fd00::1"
};

/// "192.168.16.1" and the like; empty for what is no address of the Internet.
std::string numeric_address(const sockaddr& address, socklen_t size);

/// The addresses of a host name or of an address (IPv6 with or without brackets), in getaddrinfo(3)'s order. The name
/// service can block for minutes; no name service is asked for an address.
Answer<std::vector<Address>> resolve_host(const std::string& host);

/// One unconnected socket for IPv4 and one for IPv6, bound to ports below 1024, which a `secure` export asks for. Empty
/// where we may not, or all ports are taken.
struct ReservedSockets {
  Fd v4, v6;
};
ReservedSockets reserve_sockets();

struct Connection {
  Fd fd;                 ///< non-blocking
  std::size_t index = 0; ///< of the address that answered
};

/// Connect to all addresses at once, and wait for them until the deadline, or until `patience` after the first has
/// accepted. What came of each, in their order. `reserved` gives the socket of each family.
std::vector<Answer<Fd>> connect_to_each(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                                        std::chrono::milliseconds patience, ReservedSockets reserved = {});

/// Connect to all addresses at once and take the first that accepts; the failure is that of the first address.
/// `reserved` gives the socket of each family.
Answer<Connection> connect_tcp(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                               ReservedSockets reserved = {});

} // namespace sharefs::sys

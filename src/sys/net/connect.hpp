#pragma once
// TCP connections with a deadline, for children that ask a server.
#include "sys/net/addresses.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <chrono>
#include <cstdint>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

/// A socket bound to a port below 1024, which a `secure` export asks for. Empty where we may not, or all ports are
/// taken.
Fd reserve_socket(int family);

/// A non-blocking socket, or errno: ETIMEDOUT when the deadline passed.
using Connected = tl::expected<Fd, int>;

/// Connect to all addresses at once, and wait for them until the deadline, or until `patience` after the first has
/// accepted. In the order of the addresses.
std::vector<Connected> connect_to_each(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                                       std::chrono::milliseconds patience);

/// Connect to one address, by the reserved socket if one is given.
Connected connect_to(const Address& address, std::uint16_t port, Deadline deadline, Fd reserved = {});

} // namespace sharefs::sys

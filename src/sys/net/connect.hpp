#pragma once
// TCP connections with a deadline, for children that ask a server.
#include "sys/net/addresses.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

/// A socket bound to a port below 1024, which a `secure` export asks for. Empty where we may not, or all ports are
/// taken.
Fd reserve_socket(int family);

/// A non-blocking socket, or errno: ETIMEDOUT when the deadline passed.
using Connected = tl::expected<Fd, int>;

/// Connect to all addresses (one at least) at once: the first that accepts, or else the error of the first address.
/// `reserved`: the socket for the first one.
Connected connect_to(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline, Fd reserved = {});

} // namespace sharefs::sys

#pragma once
// Makes TCP connections with a deadline, for children that ask a server.
#include "sys/net/addresses.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

/// Returns a socket that is bound to a port below 1024, which a `secure` export requires. It is empty if we have no
/// right to such a port, or all ports are in use.
Fd reserve_socket(int family);

/// A non-blocking socket, or errno; ETIMEDOUT if the deadline has passed.
using Connected = tl::expected<Fd, int>;

/// Connects to all addresses (at least one) at the same time. Returns the first connection that is accepted, or else
/// the error of the first address. `reserved`: the socket for the first address.
Connected connect_to(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline, Fd reserved = {});

} // namespace sharefs::sys

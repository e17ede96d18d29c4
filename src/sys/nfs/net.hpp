#pragma once
// TCP connections with a deadline, for the child that asks a server.
#include "sys/identity/addresses.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/child.hpp"

#include <chrono>

namespace sharefs::sys {

/// A socket bound to a port below 1024, which a `secure` export asks for. Empty where we may not, or all ports are
/// taken.
Fd reserve_socket(int family);

/// Connect to all addresses at once, and wait for them until the deadline, or until `patience` after the first has
/// accepted. The non-blocking sockets, or why there is none, in the order of the addresses.
std::vector<Answer<Fd>> connect_to_each(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                                        std::chrono::milliseconds patience);

/// Connect to one address, by the reserved socket if one is given.
Answer<Fd> connect_to(const Address& address, std::uint16_t port, Deadline deadline, Fd reserved = {});

} // namespace sharefs::sys

#pragma once
// Checks whether a host of sharefs.yaml, or of a mount, is the one that this program runs on.
#include "sys/identity/identity.hpp"

#include <optional>
#include <string>

namespace sharefs::sys {

/// Returns the name of this host, by gethostname(2).
std::string own_name();

/// Returns the address as four or sixteen bytes, because an IPv6 address has several spellings. nullopt: the text is
/// not an address.
std::optional<std::string> address_bytes(const std::string& text);

/// True for a loopback address, an address of an interface, or the host's name ("node1" and "node1.cluster" are the
/// same host). No name service is asked.
bool is_this_host(const Identity& identity, const std::string& host);

} // namespace sharefs::sys

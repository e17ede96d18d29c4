#pragma once
// Is a host of sharefs.yaml, or of a mount, the one that this program runs on?
#include "sys/identity/identity.hpp"

#include <optional>
#include <string>

namespace sharefs::sys {

/// Of this host, as gethostname(2) has it.
std::string own_name();

/// Four bytes or sixteen: an address has several spellings in IPv6. nullopt for what is no address.
std::optional<std::string> address_bytes(const std::string& text);

/// By name and address, without asking a name service: a loopback address, an address of an interface, or the host's
/// name ("node1" and "node1.cluster" are the same host).
bool is_this_host(const Identity& identity, const std::string& host);

} // namespace sharefs::sys

#pragma once
// The clients that a name in an exports file stands for, as nfs-utils decides (client_gettype in
// support/export/client.c).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace sharefs::exports {

/// The kinds stand in the order in which mountd prefers them; the order of the lines does not matter (exports(5)).
enum class ClientKind {
  host,     ///< a name, resolved when exportfs runs, or an address
  network,  ///< address/length or address/mask
  wildcard, ///< `*`, `?` or `[...]` in a name, matched against reverse lookups
  netgroup, ///< @group
  everyone, ///< `*`
  kerberos, ///< gss/krb5, gss/krb5i, gss/krb5p
};
ClientKind kind_of(std::string_view name);
const char* to_string(ClientKind kind); ///< "host", "network", ...

/// An address range as the kernel matches it: it masks both the client's address and this one, so host bits do not
/// count.
struct Network {
  bool v6 = false;
  std::array<std::uint8_t, 16> address{}, mask{}; ///< in network byte order; IPv4 uses the first four bytes

  /// True if the mask is a row of ones followed by zeros; only then is the network one range.
  [[nodiscard]] bool contiguous() const;
  [[nodiscard]] int prefix() const; ///< number of ones in the mask
  [[nodiscard]] bool has_host_bits() const;
  [[nodiscard]] std::string first() const; ///< lowest address
  [[nodiscard]] std::string last() const;  ///< highest address
  [[nodiscard]] std::string count() const; ///< "1,024"; "2^64" from 2^40 on
  friend bool operator==(const Network&, const Network&) = default;
};

/// Explains in one phrase why a text is not a network.
struct NetworkError {
  std::string message; ///< "`10.0.0.0/33` is no network: the prefix length is a number from 1 to 32"
  /// The prefix length is 0 (or there is none after the slash): nfs-utils shifts by the width of the type, which is
  /// undefined and gives /32 on x86.
  bool zero = false;
  bool all = false; ///< a mask of zeros was written out: mountd takes every address for its own
};
/// Parses a name of ClientKind::network, or an address, which is a network of one address.
tl::expected<Network, NetworkError> parse_network(std::string_view name);

/// Returns the one canonical spelling of an address ("FE80::0:1%eth0" -> "fe80::1%eth0"); "" if the name is no address.
std::string canonical_address(std::string_view name);
/// Returns the same spelling for all names that exportfs takes for the same client.
std::string normalize_client(std::string_view name);
/// True for an address that names an interface (`fe80::1%eth0`): it is valid only on a host that has this interface.
bool has_scope(std::string_view name);
/// True for a name of digits and dots only, or with a colon: somebody meant an address, even if exportfs takes it for a
/// host name.
bool looks_like_address(std::string_view name);

} // namespace sharefs::exports

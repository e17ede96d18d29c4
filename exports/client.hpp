#pragma once
// Whom a client name stands for, as nfs-utils decides it (client_gettype in support/export/client.c).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace sharefs::exports {

/// In the order in which mountd prefers them, whatever the order of the lines (exports(5)).
enum class ClientKind {
  host,     ///< a name, resolved when exportfs runs, or an address
  network,  ///< address/length or address/mask
  wildcard, ///< `*`, `?` or `[...]` in a name, matched against reverse lookups
  netgroup, ///< @group
  everyone, ///< `*`
  kerberos, ///< gss/krb5 and the like
};
ClientKind kind_of(std::string_view name);
const char* to_string(ClientKind kind); ///< "host", "network", ...

/// An address range as the kernel matches it: both sides are masked, so host bits do not count.
struct Network {
  bool v6 = false;
  std::array<std::uint8_t, 16> address{}, mask{}; ///< network byte order; IPv4 uses the first four

  /// A mask of ones followed by zeros; only then is the network one range.
  [[nodiscard]] bool contiguous() const;
  [[nodiscard]] int prefix() const; ///< number of ones in the mask
  [[nodiscard]] bool has_host_bits() const;
  [[nodiscard]] std::string first() const; ///< lowest address
  [[nodiscard]] std::string last() const;  ///< highest address
  [[nodiscard]] std::string count() const; ///< "1,024"; "2^64" from 2^40 on
  friend bool operator==(const Network&, const Network&) = default;
};

/// What is wrong with a text that should be a network; one phrase.
struct NetworkError {
  enum class Kind { address, prefix, zero, mask } kind = Kind::address;
  std::string message; ///< "`10.0.0.0/33` is no network: the prefix length is at most 32"
};
/// A name of ClientKind::network, or an address, which is a network of one. `zero`: a prefix of 0 (or none behind the
/// slash), which nfs-utils shifts by the width of the type: undefined, and /32 on x86.
tl::expected<Network, NetworkError> parse_network(std::string_view name);

/// One spelling for all ways to write an address ("FE80::0:1%eth0" -> "fe80::1%eth0"); "" for what is none.
std::string canonical_address(std::string_view name);
/// An address that names an interface (`fe80::1%eth0`): it is one only where there is that interface.
bool has_scope(std::string_view name);
/// Only digits and dots, or with a colon: meant as an address, whatever exportfs takes it for.
bool looks_like_address(std::string_view name);

} // namespace sharefs::exports

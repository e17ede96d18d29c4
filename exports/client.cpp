#include "exports/client.hpp"

#include "base/text.hpp"
#include "sys/identity/identity.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace sharefs::exports {

namespace {

using Bytes = std::array<std::uint8_t, 16>;

std::optional<Network> parse_address(const std::string& text) {
  const auto scope = text.find('%'); // fe80::1%eth0
  const auto bytes = sys::address_bytes(text.substr(0, scope));
  Network network;
  network.v6 = bytes && bytes->size() == network.address.size();
  if (!bytes || (!network.v6 && scope != std::string::npos))
    return std::nullopt;
  std::ranges::copy(*bytes, network.address.begin());
  std::fill_n(network.mask.begin(), bytes->size(), std::uint8_t{0xff});
  return network;
}

std::string show(const Network& network, const Bytes& address) {
  if (!network.v6)
    return fmt::format("{}.{}.{}.{}", address[0], address[1], address[2], address[3]);
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(AF_INET6, address.data(), buffer.data(), buffer.size());
  return buffer.data();
}

std::size_t width(const Network& network) {
  return network.v6 ? 16 : 4;
}

Bytes lowest(const Network& network) {
  Bytes address{};
  for (std::size_t i = 0; i < width(network); ++i)
    address[i] = static_cast<std::uint8_t>(network.address[i] & network.mask[i]);
  return address;
}

Bytes highest(const Network& network) {
  Bytes address{};
  for (std::size_t i = 0; i < width(network); ++i)
    address[i] = static_cast<std::uint8_t>(network.address[i] | ~network.mask[i]);
  return address;
}

} // namespace

ClientKind kind_of(std::string_view name) {
  if (name.empty() || name == "*")
    return ClientKind::everyone;
  if (name.starts_with("gss/"))
    return ClientKind::kerberos;
  if (name.front() == '@')
    return ClientKind::netgroup;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '*' || name[i] == '?' || name[i] == '[')
      return ClientKind::wildcard;
    if (name[i] == '/')
      return ClientKind::network;
    if (name[i] == '\\' && i + 1 < name.size())
      ++i;
  }
  return ClientKind::host;
}

std::string canonical_address(std::string_view name) {
  const auto address = parse_address(std::string(name));
  if (!address)
    return "";
  if (!address->v6)
    return std::string(name); // inet_pton(3) accepts only one spelling of an IPv4 address
  return address->first().append(name.substr(std::min(name.find('%'), name.size())));
}

std::string normalize_client(std::string_view name) {
  if (kind_of(name) == ClientKind::network && !parse_network(name))
    return std::string(name); // exportfs drops it, and `GSS/krb5` is not `gss/krb5`
  auto address = kind_of(name) == ClientKind::host ? canonical_address(name) : std::string();
  return address.empty() ? lower_case(name) : address;
}

bool has_scope(std::string_view name) {
  return name.find('%') != std::string_view::npos && !canonical_address(name).empty();
}

const char* to_string(ClientKind kind) {
  constexpr std::array k_names{"host", "network", "wildcard", "netgroup", "everyone", "kerberos"};
  return k_names.at(static_cast<std::size_t>(kind));
}

bool Network::contiguous() const {
  const std::span bytes(mask.data(), width(*this));
  const auto last = std::ranges::find_if(bytes, [](std::uint8_t byte) { return byte != 0xff; });
  return last == bytes.end() || (std::countl_one(*last) == std::popcount(*last) &&
                                 std::all_of(last + 1, bytes.end(), [](std::uint8_t byte) { return byte == 0; }));
}

int Network::prefix() const {
  int ones = 0;
  for (std::size_t i = 0; i < width(*this); ++i)
    ones += std::popcount(mask[i]);
  return ones;
}

bool Network::has_host_bits() const {
  const auto low = lowest(*this);
  return !std::equal(low.begin(), low.begin() + static_cast<std::ptrdiff_t>(width(*this)), address.begin());
}

std::string Network::first() const {
  return show(*this, lowest(*this));
}

std::string Network::last() const {
  return show(*this, highest(*this));
}

std::string Network::count() const {
  const int bits = static_cast<int>(width(*this) * 8) - prefix();
  if (bits >= 40)
    return fmt::format("2^{}", bits);
  auto digits = std::to_string(std::uint64_t{1} << static_cast<unsigned>(bits));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

bool looks_like_address(std::string_view name) {
  const bool digits = std::ranges::all_of(
      name, [](char byte) { return byte == '.' || std::isdigit(static_cast<unsigned char>(byte)) != 0; });
  return (digits && name.find('.') != std::string_view::npos) || name.find(':') != std::string_view::npos;
}

tl::expected<Network, NetworkError> parse_network(std::string_view name) {
  const auto wrong = [&](std::string_view why, bool zero = false, bool all = false) {
    return tl::make_unexpected(NetworkError{fmt::format("`{}` is no network: {}", name, why), zero, all});
  };
  const auto slash = name.find('/');
  const auto base = name.substr(0, slash);
  auto network = parse_address(std::string(base));
  if (!network)
    return wrong(fmt::format("`{}` is no IP address", base));
  if (slash == std::string_view::npos)
    return *network;
  const std::string length(name.substr(slash + 1));
  const int widest = network->v6 ? 128 : 32;
  if (length.find(network->v6 ? ':' : '.') != std::string::npos) {
    const auto mask = parse_address(length);
    if (!mask || mask->v6 != network->v6)
      return wrong(fmt::format("`{}` is no network mask", length));
    network->mask = mask->address;
    if (network->prefix() == 0)
      return wrong("a mask of zeros is every address", true, true);
    return *network;
  }
  char* end = nullptr;
  const auto number = std::strtoul(length.c_str(), &end, 10); // as exportfs reads it: `/+24` and `/024` are /24
  if (*end != '\0' || number > static_cast<unsigned long>(widest))
    return wrong(fmt::format("the prefix length is a number from 1 to {}", widest));
  const auto prefix = static_cast<long>(number);
  if (prefix == 0)
    return wrong(fmt::format("a prefix length of 0 is undefined in exportfs (on x86 it means {})",
                             network->v6 ? "the first 32 bits" : "the one address"),
                 true);
  for (std::size_t i = 0; i < width(*network); ++i)
    network->mask[i] = static_cast<std::uint8_t>(0xff00U >> std::clamp(prefix - static_cast<long>(8 * i), 0L, 8L));
  return *network;
}

} // namespace sharefs::exports

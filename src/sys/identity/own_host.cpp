#include "sys/identity/own_host.hpp"

#include "base/source.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <unistd.h>

namespace sharefs::sys {

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::optional<std::string> address_bytes(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1)
    return std::string(bytes.data(), sizeof(in_addr));
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1)
    return std::string(bytes.data(), bytes.size());
  return std::nullopt;
}

namespace {

std::string without_domain(const std::string& name) {
  return name.substr(0, name.find('.'));
}

} // namespace

bool is_this_host(const Identity& identity, const std::string& host) {
  if (const auto address = address_bytes(host))
    return *address == address_bytes("::1") || (address->size() == sizeof(in_addr) && address->front() == 127) ||
           std::ranges::any_of(identity.addresses,
                               [&](const std::string& own) { return address_bytes(own) == address; });
  if (host.empty() || is_same_host(host, "localhost"))
    return !host.empty();
  return is_same_host(host, identity.hostname) ||
         (host == without_domain(host) && is_same_host(host, without_domain(identity.hostname)));
}

} // namespace sharefs::sys

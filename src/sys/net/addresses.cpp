#include "sys/net/addresses.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <netdb.h>

namespace sharefs::sys {
namespace {

tl::expected<std::vector<Address>, int> look_up(const std::string& host, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  if (error == EAI_NODATA || error == EAI_ADDRFAMILY)
    return tl::make_unexpected(EAI_NONAME);
  if (error != 0)
    return tl::make_unexpected(error);
  std::vector<Address> addresses;
  for (const addrinfo* info = list; info != nullptr && addresses.size() < k_max_addresses; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
    address.text = numeric_address(*info->ai_addr, info->ai_addrlen);
    addresses.push_back(std::move(address));
  }
  return addresses;
}

} // namespace

std::string numeric_address(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

tl::expected<std::vector<Address>, int> read_address(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return look_up(bracketed ? host.substr(1, host.size() - 2) : host, AI_NUMERICHOST);
}

tl::expected<std::vector<Address>, int> resolve_host(const std::string& host) {
  auto numeric = read_address(host);
  return numeric ? numeric : look_up(host, AI_ADDRCONFIG);
}

} // namespace sharefs::sys

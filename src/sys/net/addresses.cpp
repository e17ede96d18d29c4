#include "sys/net/addresses.hpp"

#include "sys/process/call.hpp"
#include "sys/process/sandbox.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <netdb.h>

namespace sharefs::sys {
namespace {

tl::expected<std::vector<Address>, int> get_addresses(const std::string& host, int flags) {
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

std::optional<Address> read_address(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const auto found = get_addresses(bracketed ? host.substr(1, host.size() - 2) : host, AI_NUMERICHOST);
  return found ? std::optional(found->front()) : std::nullopt;
}

tl::expected<std::vector<Address>, int> resolve_host(const std::string& host) {
  const auto numeric = read_address(host);
  return numeric ? std::vector{*numeric} : get_addresses(host, AI_ADDRCONFIG);
}

Result<std::vector<std::string>> resolve_in_child(const std::string& host, std::chrono::milliseconds deadline) {
  if (const auto address = read_address(host))
    return std::vector{address->text};
  auto resolved = call(std::nullopt, deadline, [&host]() -> Result<std::vector<std::string>> {
    if (const int error = drop_privileges(); error != 0)
      return fail(errno_error(error, "cannot drop privileges"));
    const auto found = resolve_host(host);
    if (!found)
      return fail(found.error() == EAI_NONAME ? ErrorCode::not_found : ErrorCode::config,
                  ::gai_strerror(found.error()));
    std::vector<std::string> addresses;
    for (const Address& one : *found)
      addresses.push_back(one.text);
    return addresses;
  });
  const auto is_address = [](const std::string& text) { return read_address(text).has_value(); };
  if (resolved && (resolved->size() > k_max_addresses || !std::ranges::all_of(*resolved, is_address)))
    return fail(ErrorCode::config, "it gave what is no address");
  return resolved;
}

} // namespace sharefs::sys

#include "sys/nfs/net.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>

namespace sharefs::sys {
namespace {

constexpr int k_socket_type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC; // the sandbox allows this one

Answer<std::vector<Address>> look_up(const std::string& host, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  if (error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY)
    return failure(Fault::no_such_name);
  if (error != 0)
    return failure(Fault::name_service, error);
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

void set_port(Address& address, std::uint16_t port) {
  if (address.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

/// As bindresvport(3), which knows IPv4 only.
Fd reserve_socket(sa_family_t family) {
  Fd fd(::socket(family, k_socket_type, 0));
  const int on = 1;
  if (family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on); // the other socket may have the same port
  const linger reset{1, 0}; // else each connection keeps its port for a minute, and there are few
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  constexpr unsigned lowest = 665, count = 1023 - lowest + 1;                        // below are well-known services
  const auto first = static_cast<unsigned>(Clock::now().time_since_epoch().count()); // not the same for all
  Address own;
  own.storage.ss_family = family;
  own.size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  for (unsigned i = 0; fd && i < count; ++i) {
    set_port(own, static_cast<std::uint16_t>(lowest + (first % count + i) % count));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own.storage), own.size) == 0)
      return fd;
    if (errno != EADDRINUSE)
      break;
  }
  return {};
}

struct Attempt {
  Fd fd;
  std::optional<int> result; ///< 0: connected, else errno; none yet while it is under way
};

Attempt begin_attempt(Address address, std::uint16_t port, ReservedSockets& reserved) {
  Attempt attempt;
  attempt.fd = std::move(address.storage.ss_family == AF_INET6 ? reserved.v6 : reserved.v4);
  if (!attempt.fd)
    attempt.fd.reset(::socket(address.storage.ss_family, k_socket_type, 0));
  set_port(address, port);
  if (attempt.fd && ::connect(attempt.fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0)
    attempt.result = 0;
  else if (errno != EINPROGRESS)
    attempt.result = errno;
  return attempt;
}

int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

} // namespace

std::string numeric_address(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

Answer<std::vector<Address>> resolve_host(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  auto numeric = look_up(name, AI_NUMERICHOST);
  return numeric ? numeric : look_up(name, AI_ADDRCONFIG);
}

ReservedSockets reserve_sockets() {
  return {reserve_socket(AF_INET), reserve_socket(AF_INET6)};
}

std::vector<Answer<Fd>> connect_to_each(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                                        std::chrono::milliseconds patience, ReservedSockets reserved) {
  std::vector<Attempt> attempts;
  for (const Address& address : addresses)
    attempts.push_back(begin_attempt(address, port, reserved));
  for (bool accepted = false;;) {
    std::vector<pollfd> fds;
    bool open = false;
    for (Attempt& attempt : attempts) {
      if (attempt.result == 0 && !accepted) {
        accepted = true;
        deadline = std::min(deadline, deadline_in(patience));
      }
      open = open || !attempt.result;
      fds.push_back({attempt.result ? -1 : attempt.fd.get(), POLLOUT, 0});
    }
    if (!open || Clock::now() >= deadline)
      break;
    ::poll(fds.data(), fds.size(), poll_time(deadline));
    for (std::size_t i = 0; i < fds.size(); ++i)
      if (fds[i].fd >= 0 && fds[i].revents != 0)
        attempts[i].result = socket_error(fds[i].fd);
  }
  std::vector<Answer<Fd>> results;
  for (Attempt& attempt : attempts) {
    if (attempt.result == 0)
      results.emplace_back(std::move(attempt.fd));
    else
      results.emplace_back(failure(Fault::connection, attempt.result.value_or(ETIMEDOUT)));
  }
  return results;
}

Answer<Connection> connect_tcp(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline,
                               ReservedSockets reserved) {
  auto results = connect_to_each(addresses, port, deadline, std::chrono::milliseconds(0), std::move(reserved));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i])
      return Connection{std::move(*results[i]), i};
  return failure(Fault::connection, results.empty() ? EHOSTUNREACH : results[0].error().error_number);
}

} // namespace sharefs::sys

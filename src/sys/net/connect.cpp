#include "sys/net/connect.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <utility>

namespace sharefs::sys {
namespace {

constexpr int k_socket_type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC; // the sandbox allows only this type

void set_port(Address& address, std::uint16_t port) {
  if (address.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

struct ConnectAttempt {
  Fd fd;
  std::optional<int> result; ///< 0: connected, else errno; nullopt while the attempt is in progress
};

ConnectAttempt begin_attempt(Address address, std::uint16_t port, Fd reserved) {
  ConnectAttempt attempt{std::move(reserved), {}};
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

/// Returns the first connection that is accepted, or else the error of the first attempt.
Connected wait_for(std::vector<ConnectAttempt> attempts, Deadline deadline) {
  for (;;) {
    std::vector<pollfd> fds;
    bool open = false;
    for (ConnectAttempt& attempt : attempts) {
      if (attempt.result == 0)
        return std::move(attempt.fd);
      open = open || !attempt.result;
      fds.push_back({attempt.result ? -1 : attempt.fd.get(), POLLOUT, 0});
    }
    if (!open || Clock::now() >= deadline)
      return tl::make_unexpected(attempts.front().result.value_or(ETIMEDOUT));
    ::poll(fds.data(), fds.size(), poll_time(deadline));
    for (std::size_t i = 0; i < fds.size(); ++i)
      if (fds[i].fd >= 0 && fds[i].revents != 0)
        attempts[i].result = socket_error(fds[i].fd);
  }
}

} // namespace

/// Like bindresvport(3), which supports only IPv4.
Fd reserve_socket(int family) {
  Fd fd(::socket(family, k_socket_type, 0));
  const int on = 1;
  if (family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on); // an IPv4 socket may then use the same port
  const linger reset{1, 0}; // without it each closed connection keeps its port for a minute, and there are few ports
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  constexpr unsigned lowest = 665, count = 1023 - lowest + 1; // lower ports belong to well-known services
  // Processes begin at different ports, so that they rarely try the same one.
  const auto first = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  Address own;
  own.storage.ss_family = static_cast<sa_family_t>(family);
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

Connected connect_to(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline, Fd reserved) {
  std::vector<ConnectAttempt> attempts;
  for (const Address& address : addresses)
    attempts.push_back(begin_attempt(address, port, std::exchange(reserved, Fd())));
  return wait_for(std::move(attempts), deadline);
}

} // namespace sharefs::sys

#include "sys/nfs/net.hpp"

#include "base/text.hpp"
#include "sys/process/process.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>

namespace sharefs::sys {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

int look_up(const std::string& host, int flags, AddressList& list) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  list.reset(found);
  return error;
}

std::string printable(const addrinfo& info) {
  std::array<char, NI_MAXHOST> buffer{};
  ::getnameinfo(info.ai_addr, info.ai_addrlen, buffer.data(), buffer.size(), nullptr, 0, NI_NUMERICHOST);
  return buffer.data();
}

/// No name service is asked for these.
std::vector<Address> numeric_addresses(const std::string& text) {
  std::vector<Address> result;
  AddressList list(nullptr, ::freeaddrinfo);
  if (look_up(text, AI_NUMERICHOST, list) != 0)
    return result;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
    address.text = printable(*info);
    result.push_back(address);
  }
  return result;
}

/// In a child: one address per line.
Result<std::string> ask_name_service(const std::string& host) {
  AddressList list(nullptr, ::freeaddrinfo);
  const int error = look_up(host, AI_ADDRCONFIG, list);
  if (error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY)
    return fail(ErrorCode::not_found, ::gai_strerror(error));
  if (error != 0)
    return fail(ErrorCode::failed, error == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(error));
  std::string lines;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next)
    lines += printable(*info) + "\n";
  return lines;
}

void set_port(Address& address, std::uint16_t port) {
  if (address.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

/// As bindresvport(3), which knows IPv4 only. Without the privilege the port stays as it is.
void bind_reserved_port(int fd, const Address& peer) {
  constexpr unsigned lowest = 665, count = 1023 - lowest + 1; // below are well-known services
  std::minstd_rand random(std::random_device{}());
  const unsigned first = static_cast<unsigned>(random()) % count;
  Address own;
  own.storage.ss_family = peer.storage.ss_family;
  own.size = peer.size;
  for (unsigned i = 0; i < count; ++i) {
    set_port(own, static_cast<std::uint16_t>(lowest + (first + i) % count));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&own.storage), own.size) == 0 || errno != EADDRINUSE)
      return;
  }
}

int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

struct Attempt {
  Fd fd;
  bool connected = false;
  int error_number = 0;
};

Attempt begin_attempt(Address address, std::uint16_t port, bool reserved) {
  Attempt attempt;
  attempt.fd.reset(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!attempt.fd) {
    attempt.error_number = errno;
    return attempt;
  }
  set_port(address, port);
  if (reserved)
    bind_reserved_port(attempt.fd.get(), address);
  if (::connect(attempt.fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0)
    attempt.connected = true;
  else if (errno != EINPROGRESS)
    attempt.error_number = errno;
  return attempt;
}

} // namespace

Result<std::vector<Address>> resolve_host(const std::string& host, Deadline deadline) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  if (auto numeric = numeric_addresses(name); !numeric.empty())
    return numeric;
  const auto left = std::chrono::milliseconds(poll_time(deadline));
  const auto answer = in_child(std::nullopt, left, [&name] { return ask_name_service(name); });
  if (!answer)
    return fail(answer.error());
  std::vector<Address> result;
  for (const std::string& line : split_lines(*answer))
    for (Address& address : numeric_addresses(line))
      result.push_back(std::move(address));
  if (result.empty())
    return fail(ErrorCode::not_found, "no address");
  return result;
}

Connection connect_tcp(const std::vector<Address>& addresses, std::uint16_t port, Deadline deadline, bool reserved) {
  std::vector<Attempt> attempts;
  for (const Address& address : addresses)
    attempts.push_back(begin_attempt(address, port, reserved));
  Connection result;
  for (;;) {
    std::vector<pollfd> fds;
    bool open = false;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].connected) {
        result.fd = std::move(attempts[i].fd);
        result.index = i;
        return result;
      }
      const bool waiting = attempts[i].error_number == 0;
      open = open || waiting;
      fds.push_back({waiting ? attempts[i].fd.get() : -1, POLLOUT, 0});
    }
    if (!open || Clock::now() >= deadline)
      break;
    ::poll(fds.data(), fds.size(), poll_time(deadline));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0)
        continue;
      attempts[i].error_number = socket_error(fds[i].fd);
      attempts[i].connected = attempts[i].error_number == 0;
    }
  }
  result.error_number = EHOSTUNREACH;
  if (!attempts.empty())
    result.error_number = attempts[0].error_number == 0 ? ETIMEDOUT : attempts[0].error_number;
  return result;
}

} // namespace sharefs::sys

#include "sys/process/service_manager.hpp"

#include "base/number.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

std::optional<std::int64_t> number_in(const std::optional<std::string>& text) {
  return text ? parse_number<std::int64_t>(*text) : std::nullopt;
}

} // namespace

ServiceManager::ServiceManager(const std::optional<std::string>& socket, const std::optional<std::string>& watchdog,
                               const std::optional<std::string>& watchdog_pid) {
  // The address is a path, or `@` and a name in the abstract namespace.
  if (!socket || socket->size() < 2 || socket->size() >= sizeof(sockaddr_un::sun_path) ||
      (socket->front() != '/' && socket->front() != '@'))
    return;
  m_address = *socket;
  if (m_address.front() == '@')
    m_address.front() = '\0';
  m_socket.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto time = number_in(watchdog);
  const auto pid = number_in(watchdog_pid); // the variables are meant for this process, not for its children
  if (time && *time > 0 && (!pid || *pid == ::getpid()))
    m_watchdog = std::chrono::milliseconds(*time / 2000);
}

void ServiceManager::send(std::string_view message) const {
  if (!m_socket)
    return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, m_address.data(), m_address.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + m_address.size());
  ::sendto(m_socket.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length); // NOLINT(*-reinterpret-cast): sendto(2) requires it
}

bool logs_to_journal(const std::optional<std::string>& stream) {
  struct stat status{};
  return stream && ::fstat(STDERR_FILENO, &status) == 0 &&
         *stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

} // namespace sharefs::sys

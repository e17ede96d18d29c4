#pragma once
// Sends messages of a service to systemd. The protocol of sd_notify(3) is one datagram, and services are meant to
// implement it themselves.
#include "sys/process/fd.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::sys {

class ServiceManager {
 public:
  /// Takes the values of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without the first nothing is sent.
  ServiceManager(const std::optional<std::string>& socket, const std::optional<std::string>& watchdog,
                 const std::optional<std::string>& watchdog_pid);
  /// Sends one message of one or more lines: "READY=1", "STATUS=3 mounts are well". Never blocks; a message that cannot
  /// be sent is lost.
  void send(std::string_view message) const;
  /// Returns how often "WATCHDOG=1" must be sent: half of systemd's waiting time. nullopt: never.
  [[nodiscard]] std::optional<std::chrono::milliseconds> watchdog() const { return m_watchdog; }

 private:
  Fd m_socket;
  std::string m_address;
  std::optional<std::chrono::milliseconds> m_watchdog;
};

/// True if standard error goes to the systemd journal. `stream` is the value of JOURNAL_STREAM (systemd.exec(5)).
bool logs_to_journal(const std::optional<std::string>& stream);

} // namespace sharefs::sys

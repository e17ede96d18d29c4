#pragma once
// Messages of a service to systemd: sd_notify(3), whose protocol is one datagram and meant to be written anew.
#include "sys/process/fd.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::sys {

class ServiceManager {
 public:
  /// The values of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; without the first nothing is said.
  ServiceManager(const std::optional<std::string>& socket, const std::optional<std::string>& watchdog,
                 const std::optional<std::string>& watchdog_pid);
  /// "READY=1", "STATUS=3 mounts are well"; lines of one message. Never blocks; what cannot be said is lost.
  void say(std::string_view message) const;
  /// How often "WATCHDOG=1" must be said: half of what systemd waits. nullopt: not at all.
  [[nodiscard]] std::optional<std::chrono::milliseconds> watchdog() const { return m_watchdog; }

 private:
  Fd m_socket;
  std::string m_address;
  std::optional<std::chrono::milliseconds> m_watchdog;
};

/// Standard error leads to the journal; `stream` is the value of JOURNAL_STREAM (systemd.exec(5)).
bool logs_to_journal(const std::optional<std::string>& stream);

} // namespace sharefs::sys

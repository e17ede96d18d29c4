#pragma once
// One holder of a piece of shared storage among all hosts: a file that is made by link(2), which exactly one of many
// can, over NFS too, and that its holder touches while it works. flock(2) is not used: with `nolock` it excludes nobody
// on another host. Clocks are not compared: whoever waits watches with his own whether the file still changes.
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

struct LeaseHolder {
  std::string host, boot_id;
  int pid = 0;
  std::uint64_t start = 0; ///< field 22 of /proc/PID/stat
  std::string user;
  std::int64_t since = 0; ///< seconds since 1970, by the holder's clock
  std::string what;       ///< the command
  friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
  /// "alice on node1 (pid 12, `conda update llm`)"
  [[nodiscard]] std::string text() const;
};
std::string format_lease(const LeaseHolder& holder);
/// nullopt: not written by us.
std::optional<LeaseHolder> parse_lease(std::string_view text);

/// When a process was started, in clock ticks since boot (proc(5), field 22 of stat); nullopt: there is none. Together
/// with the boot's id it tells a process from a later one with the same number.
std::optional<std::uint64_t> process_start(const Files& files, int pid);

struct LeaseRequest {
  std::string path; ///< of the file; its directory exists
  std::string what;
  std::chrono::milliseconds wait{0};               ///< for another holder to let go
  std::chrono::milliseconds touch_every{5'000};    ///< how often a holder touches it
  std::chrono::milliseconds expires_after{60'000}; ///< a holder on another host, without touching it, is gone
  std::chrono::milliseconds deadline{10'000};      ///< for each answer of the file system
};

/// Held by a child process, which touches the file, and removes it when this object or this process goes.
class Lease {
 public:
  struct Own { ///< our file
    std::uint64_t inode = 0;
    std::string text;
  };
  /// `busy` with the holder in its message after LeaseRequest::wait; `timeout`, `interrupted`, `permission`. A holder
  /// that is known to be gone (same host: another boot, or no such process) is succeeded at once, one on another host
  /// once its file has not changed for LeaseRequest::expires_after. `waiting` is called while it waits.
  static Result<Lease> take(System& system, const LeaseRequest& request,
                            const std::function<void(const LeaseHolder& holder)>& waiting = nullptr);
  Lease(Lease&& other) noexcept
      : m_keeper(std::exchange(other.m_keeper, std::nullopt)), m_request(std::move(other.m_request)),
        m_root(std::move(other.m_root)), m_own(std::move(other.m_own)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Looks: `conflict` if the file was taken away, or could not be touched for so long that others may think us gone.
  /// Then nothing more may be changed.
  [[nodiscard]] Result<void> check();

 private:
  Lease(WorkingChild keeper, LeaseRequest request, std::string root, Own own)
      : m_keeper(std::move(keeper)), m_request(std::move(request)), m_root(std::move(root)), m_own(std::move(own)) {}

  std::optional<WorkingChild> m_keeper;
  LeaseRequest m_request;
  std::string m_root;
  Own m_own;
};

} // namespace sharefs::sys

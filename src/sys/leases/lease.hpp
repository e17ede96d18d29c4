#pragma once
// A lease makes one process of all hosts the holder of a piece of shared storage. It is a file that is made by link(2),
// which succeeds for exactly one of many processes, also over NFS, and that the holder touches while it works. flock(2)
// is not used: with `nolock` it excludes nobody on another host. Clocks are not compared: a waiting process measures by
// its own clock how long the file has not changed.
#include "base/fields.hpp"
#include "base/result.hpp"
#include "sys/process/child.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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
/// The content of a lease file is this as JSON.
template <FieldsOf<LeaseHolder> H> auto fields(H& h) {
  return named("host", h.host, "boot_id", h.boot_id, "pid", h.pid, "start", h.start, "user", h.user, "since", h.since,
               "what", h.what);
}

struct LeaseRequest {
  std::string path; ///< path of the file; its directory must exist
  std::string what;
  std::chrono::milliseconds wait{0};               ///< how long to wait for another holder
  std::chrono::milliseconds touch_every{5'000};    ///< how often the holder touches the file
  std::chrono::milliseconds expires_after{60'000}; ///< a holder that has not touched the file for so long is dead
  std::chrono::milliseconds deadline{10'000};      ///< for each answer of the file system
};

/// A lease that we hold. A child process, the keeper, touches the file, and removes it when this object is destroyed or
/// this process ends.
class Lease {
 public:
  struct Own { ///< identifies our file
    std::uint64_t inode = 0;
    std::string text;
  };
  /// Takes the lease. Errors: `busy`, with the holder in its message, after LeaseRequest::wait; `timeout`,
  /// `interrupted`, `permission`. A holder on this host that is known to be dead (no such process, or another boot and
  /// not touched for LeaseRequest::expires_after) is replaced at once; any other holder once its file has not changed
  /// for that long. `waiting` is called while waiting.
  static Result<Lease> take(System& system, const LeaseRequest& request,
                            const std::function<void(const LeaseHolder& holder)>& waiting = nullptr);
  Lease(Lease&& other) noexcept
      : m_keeper(std::exchange(other.m_keeper, std::nullopt)), m_request(std::move(other.m_request)),
        m_root(std::move(other.m_root)), m_own(std::move(other.m_own)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Checks that the file is still ours. Error `conflict`: the file was removed, or another host has taken over the
  /// lease because we could not touch the file for too long. Then the caller must not change anything more.
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

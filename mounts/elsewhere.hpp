#pragma once
// How another host sees a mount of this one: a second client, which tries the locks that this host holds, and the
// server. Asked by ssh, and nothing is changed there.
#include "base/diagnosis.hpp"
#include "mounts/mount_point.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// Names of users and groups with their numbers, as getent(1) lists them.
struct Accounts {
  std::map<std::string, std::string> users, groups;
  friend bool operator==(const Accounts&, const Accounts&) = default;
};

/// What one host said, once.
struct RemoteView {
  std::string host, boot_id;        ///< uname -n
  std::optional<std::int64_t> time; ///< seconds
  Accounts accounts;                ///< of those that were asked for
  std::string missing;              ///< why there is no test file there; the rest is empty then
  std::string token;                ///< in the test file
  std::string owner;                ///< of the test file: its uid
  std::string options;              ///< of the mount there
  std::string flock, posix;         ///< "free", "held", or why it could not be tried
  std::vector<std::string> clients; ///< lines of auth.unix.ip: "nfsd 10.0.0.2 DOMAIN"
  std::vector<std::string> exports; ///< lines of nfsd.export: "/srv/share\tDOMAIN(rw,sync)"
  friend bool operator==(const RemoteView&, const RemoteView&) = default;
};

struct RemoteQuestion {
  std::string directory; ///< there
  std::string file;      ///< HeldLocks::name
  bool server = false;   ///< ask for what an NFS server knows, else for locks
  std::vector<std::string> users, groups;
};
/// For a POSIX shell. It reads only; every word of the question is quoted.
std::string remote_script(const RemoteQuestion& question);
/// Only our own lines: a login may print others.
RemoteView parse_remote_view(std::string_view text);

enum class Exclusion { unknown, excludes, open, stuck };
/// By what a node said while the lock was held, and after that.
Exclusion exclusion_of(const std::string& while_held, const std::string& after);

/// What the server decided about this host: the line of its export and its options ("rw,sync,root_squash").
struct Admission {
  std::string client, options;
  friend bool operator==(const Admission&, const Admission&) = default;
};
/// For requests of one of `addresses` to `path`; nullopt: it has not decided anything for them.
std::optional<Admission> admission_of(const RemoteView& server, const std::vector<std::string>& addresses,
                                      const std::string& path);

/// SF237 for a name with another number there, or a number with another name.
Diagnoses compare_accounts(const MountPoint& point, const std::string& host, const Accounts& here,
                           const Accounts& there);

struct ElsewhereRequest {
  std::string node;                       ///< for ssh; empty: locks are not tried
  bool server = false;                    ///< ask each server
  std::vector<std::string> users, groups; ///< whose numbers are compared
  std::chrono::milliseconds deadline{5000};
};
struct Elsewhere {
  std::string target;
  bool ok = true; ///< what was asked for was tried, and nothing is an error
  Exclusion flock = Exclusion::unknown, posix = Exclusion::unknown;
  std::optional<Admission> admission;
  std::vector<std::string> good; ///< what is as it should be, one line each
  friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
};
struct ElsewhereFound {
  std::vector<Elsewhere> results; ///< in the order of the points
  Diagnoses diagnoses; ///< SF236 and SF237 of the other host, SF239 locks, SF240 could not be tried, SF244 async
};
struct WrittenPoint {
  MountPoint point;
  std::optional<sys::User> writer; ///< who can write there, if not we
};
/// One mount after the other. A host that cannot be asked is not asked again for the next mount.
ElsewhereFound look_from_elsewhere(sys::System& system, const std::vector<WrittenPoint>& points,
                                   const ElsewhereRequest& request);

} // namespace sharefs::mounts

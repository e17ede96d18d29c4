#pragma once
// Does a mount really work: write, fsync, read back and delete a file; on a read-only mount, read the directory.
#include "base/diagnosis.hpp"
#include "mounts/probe.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct Verified {
  std::string target;
  bool ok = false;                      ///< it can be used; a squashed root that may not write is ok with a warning
  bool written = false;                 ///< a file was written, not only read
  std::optional<sys::User> as;          ///< as whom, if not as ourselves: named "uid 1000", "gid 2000"
  std::chrono::microseconds latency{0}; ///< of one answer of the server
  friend bool operator==(const Verified&, const Verified&) = default;
};
template <FieldsOf<Verified> V> auto fields(V& v) {
  return named("target", v.target, "ok", v.ok, "written", v.written, "latency_us", v.latency);
}

struct Verification {
  std::vector<Verified> results; ///< in the order of the points
  Diagnoses diagnoses;           ///< SF216 read-only, SF227 root is squashed, SF228 it does not work, SF230 full,
                                 ///< SF236 the server's clock, SF237 whose the file became
};

/// All mounts in one request. Root that the server squashes tries again as somebody who may write: the owner of the
/// directory, or a member of its group.
Verification verify(sys::System& system, const std::vector<MountPoint>& points, std::chrono::milliseconds deadline);

/// SF248, for each mount that answers: the server does not take this user for a member of the group that the mount
/// belongs to, and this host does. For root, of those `users` whom this host knows.
Diagnoses diagnose_refusals(sys::System& system, const Observation& seen, const std::vector<std::string>& users);

inline constexpr std::uint32_t k_nobody = 65534;

/// Who may write to a directory that root may not, by its owner and mode; nullopt if only root may.
std::optional<sys::User> likely_writer(const sys::Entry& directory);
/// "write, fsync, read back and delete worked as gid 2000"
std::string describe(const Verified& verified);

} // namespace sharefs::mounts

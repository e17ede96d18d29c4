#pragma once
// Tests whether a mount really works: writes, fsyncs, reads back and deletes a file. On a read-only mount it reads the
// directory.
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
  bool ok = false;                      ///< the mount can be used; if squashed root may not write, that is a warning
  bool written = false;                 ///< a file was written; false: the directory was only read
  std::optional<sys::User> as;          ///< the user of the test, if not this one: named "uid 1000", "gid 2000"
  std::chrono::microseconds latency{0}; ///< time until the server answered
  friend bool operator==(const Verified&, const Verified&) = default;
};
template <FieldsOf<Verified> V> auto fields(V& v) {
  return named("target", v.target, "ok", v.ok, "written", v.written, "latency_us", v.latency);
}

struct Verification {
  std::vector<Verified> results; ///< in the order of the points
  Diagnoses diagnoses;           ///< SF216 read-only, SF227 root is squashed, SF228 it does not work, SF230 full,
                                 ///< SF236 the server's clock, SF237 the owner of the file
};

/// Tests all mounts in one request. If the server squashes root, the test is done again as a user who may write: the
/// owner of the directory, or a member of its group.
Verification verify(sys::System& system, const std::vector<MountPoint>& points, std::chrono::milliseconds deadline);

/// Returns SF248 for each mount that answers and whose server does not know that a user is in the group of the mount,
/// although this host does. Checked is this user; root checks all of `users` that this host knows.
Diagnoses diagnose_refusals(sys::System& system, const Observation& seen, const std::vector<std::string>& users);

inline constexpr std::uint32_t k_nobody = 65534;

/// Returns a user who may write to the directory, by its owner and mode; nullopt if only root may.
std::optional<sys::User> likely_writer(const sys::Entry& directory);
/// Returns "write, fsync, read back and delete worked as gid 2000".
std::string describe(const Verified& verified);

} // namespace sharefs::mounts

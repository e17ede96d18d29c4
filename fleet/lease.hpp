#pragma once
// The cluster lease: a note on each server that names who is changing the cluster's machines, so that two
// administrators on two machines do not work against each other.
#include "base/fields.hpp"
#include "base/result.hpp"
#include "sys/fs/files.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sharefs::fleet {

struct ClusterLease {
  std::string run;        ///< the run, as for `sharefs nodes resume`
  std::string who;        ///< "alice@login1"
  std::int64_t since = 0; ///< seconds since 1970, by this server's clock
  std::int64_t until = 0; ///< the lease ends then, whatever its holder does
  friend bool operator==(const ClusterLease&, const ClusterLease&) = default;
};
template <FieldsOf<ClusterLease> L> auto fields(L& l) {
  return named("run", l.run, "who", l.who, "since", l.since, "until", l.until);
}

/// Takes the lease at the time `lease.since`. Its holder may take it again, because runs of one machine have a lock of
/// their own. Error `busy`, with the name of the holder, if somebody else has it.
Result<void> take_lease(const sys::Files& files, const std::string& path, const ClusterLease& lease);
/// Gives the lease back if that run holds it.
Result<void> give_back_lease(const sys::Files& files, const std::string& path, const std::string& run);

} // namespace sharefs::fleet

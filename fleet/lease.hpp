#pragma once
// Who changes many machines of a cluster: a note on each of its servers, so that two administrators on two machines do
// not work against each other.
#include "base/fields.hpp"
#include "base/result.hpp"
#include "sys/fs/files.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sharefs::fleet {

struct ClusterLease {
  std::string run;        ///< of `sharefs nodes resume`
  std::string who;        ///< "alice@login1"
  std::int64_t since = 0; ///< seconds since 1970, by this server's clock
  std::int64_t until = 0; ///< then it is over, whatever became of its holder
  friend bool operator==(const ClusterLease&, const ClusterLease&) = default;
};
template <FieldsOf<ClusterLease> L> auto fields(L& l) {
  return named("run", l.run, "who", l.who, "since", l.since, "until", l.until);
}

/// Takes it for `lease` at the time `lease.since`. Whoever has it may take it again: one machine's runs have a lock of
/// their own. Error `busy`, with its holder, where another one has it.
Result<void> take_lease(const sys::Files& files, const std::string& path, const ClusterLease& lease);
/// Gives it back, if it is that run's.
Result<void> give_back_lease(const sys::Files& files, const std::string& path, const std::string& run);

} // namespace sharefs::fleet

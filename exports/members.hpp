#pragma once
// Checks that this server grants users the rights of the group to which an export belongs. A server looks up a user's
// groups itself (`manage-gids` of rpc.mountd(8)), or takes the groups that the client sends, 16 at most.
#include "base/diagnosis.hpp"
#include "plan/directory_access.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::exports {

struct Members {
  bool manage_gids = false;                              ///< nfs.conf(5), [mountd]
  std::map<std::string, std::optional<sys::User>> users; ///< nullopt: this server does not know the user
};
/// Looks up the users. A user for whom the name service fails or gives no answer in time is left out.
Members probe_members(sys::System& system, const std::vector<std::string>& users);

/// SF156, for each directory to which a group gets access.
Diagnoses diagnose_members(const Members& members,
                           const std::map<std::string, plan::DirectoryAccess, std::less<>>& access);

} // namespace sharefs::exports

#pragma once
// Whether this server lets in those who shall use an export that belongs to a group. A server asks its own groups
// (`manage-gids` of rpc.mountd(8)), or takes the first 16 that a client sends.
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
  std::map<std::string, std::optional<sys::User>> users; ///< as this server knows them; nullopt: not at all
};
/// Of a user whom the name service does not tell in time nothing is said.
Members probe_members(sys::System& system, const std::vector<std::string>& users);

/// SF156, for each directory whose access is a group's.
Diagnoses diagnose_members(const Members& members,
                           const std::map<std::string, plan::DirectoryAccess, std::less<>>& access);

} // namespace sharefs::exports

#pragma once
// The users of shared environments, who may read where root is squashed, and their homes.
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::conda {

/// Users who have conda in the same place.
struct Homes {
  std::vector<std::string> users;
  std::string conda; ///< below each home, or an absolute path: one installation for all of them
  friend bool operator==(const Homes&, const Homes&) = default;
};

/// Returns the users of all homes.
std::vector<std::string> users_of(const std::vector<Homes>& homes);

/// Files of a share as a user who may read them sees them: on its server root may be nobody (root_squash).
struct PermittedEntries {
  std::vector<sys::Entry> entries;  ///< in the order of the queries
  std::optional<sys::User> by = {}; ///< the user who has read them; nullopt: this process's user
};
bool is_denied(const sys::Entry& entry);
/// Reads the entries as this process's user. If root is denied one, reads them as the first of `users` who may read
/// all; if nobody may, returns what root has read.
PermittedEntries read_as_permitted(sys::System& system, sys::EntryRequest request,
                                   const std::vector<std::string>& users);

/// Returns the owner. Fails with `permission` and this hint if this host does not know that user.
Result<sys::User> owner_of(sys::System& system, const sys::Entry& entry, std::string hint = {});

/// Returns the reason why the entry is not known or cannot be read.
std::string reason_of(const sys::Entry& entry);

} // namespace sharefs::conda

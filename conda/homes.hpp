#pragma once
// Reads users' homes. Where root is squashed only the users themselves may read them, and some homes may lie on a dead
// server.
#include "sys/system.hpp"

#include <map>
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

/// Reads homes user by user, with one child for each. A file system that gave no answer once is not asked again.
class HomeReader {
 public:
  HomeReader(sys::System& system, sys::MountTable mounts);

  [[nodiscard]] bool as_root() const { return m_as_root; }
  /// Finds the homes, all in one request. A home may be a link of the administrator, which is followed. An empty path
  /// gives an entry of kind `missing`.
  std::vector<sys::Entry> find(const std::vector<std::string>& homes);
  /// Returns the entries as the user sees them, in the order of the queries.
  std::vector<sys::Entry> read(const sys::User& user, std::vector<sys::EntryQuery> queries);

 private:
  using Superblock = std::pair<unsigned, unsigned>;
  [[nodiscard]] Superblock superblock_of(const std::string& path) const;
  void note_hung(const std::vector<sys::Entry>& entries);

  sys::System& m_system;
  sys::MountTable m_mounts;
  bool m_as_root;
  std::map<Superblock, std::string> m_hung; ///< with the first path on it that gave no answer
};

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

#pragma once
// Users' homes, which only their users may read where root is squashed, and some of which may lie on a dead server.
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

/// All of them.
std::vector<std::string> users_of(const std::vector<Homes>& homes);

/// Asks one user after the other, one child for each. A file system that did not answer one of them is not asked again.
class HomeReader {
 public:
  HomeReader(sys::System& system, sys::MountTable mounts);

  [[nodiscard]] bool as_root() const { return m_as_root; }
  /// Where the homes are, all in one request: a home itself may be a link of the administrator's, which is followed.
  /// An empty path is an entry of kind `missing`.
  std::vector<sys::Entry> find(const std::vector<std::string>& homes);
  /// The entries in the order of the queries, as the user sees them.
  std::vector<sys::Entry> read(const sys::User& user, std::vector<sys::EntryQuery> queries);

 private:
  using Superblock = std::pair<unsigned, unsigned>;
  [[nodiscard]] Superblock superblock_of(const std::string& path) const;
  void note_hung(const std::vector<sys::Entry>& entries);

  sys::System& m_system;
  sys::MountTable m_mounts;
  bool m_as_root;
  std::map<Superblock, std::string> m_hung; ///< and the first path on it that had no answer
};

/// Files of a share, as somebody sees them who may: root may be nobody on its server (root_squash).
struct Seen {
  std::vector<sys::Entry> entries;  ///< in the order of the queries
  std::optional<sys::User> by = {}; ///< nullopt: as ourselves
};
bool is_denied(const sys::Entry& entry);
/// As ourselves; what root is denied, as the first of these users who may see all of it. If nobody may, as ourselves.
Seen see(sys::System& system, sys::EntryRequest request, const std::vector<std::string>& users);

/// To whom it belongs. Error `permission`, with this hint: this host does not know that user.
Result<sys::User> owner_of(sys::System& system, const sys::Entry& entry, std::string hint = {});

/// Why the entry is not known or cannot be read, in words.
std::string reason_of(const sys::Entry& entry);

} // namespace sharefs::conda

#pragma once
// The facts about the paths of a launch. Each path is read once, when it is needed, within a deadline.
#include "cachefix/store/local_root.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cachefix {

using Names = std::vector<std::string>;

/// The kinds of facts about a path.
enum class PathFact {
  place, ///< whether it lies on shared storage and can be written
  start, ///< the first 256 bytes of a file
  text,  ///< a whole file; no content if it is larger than 1 MiB
  names, ///< the names in a directory
};

/// Reads facts from the system and keeps them. References stay valid.
class Facts {
 public:
  using FindLocal = std::function<LocalRoot()>;
  Facts(sys::System& system, FindLocal find_local) : m_system(system), m_find_local(std::move(find_local)) {}

  /// True if any mount of this host is shared. If none is, no path is read.
  bool any_shared();
  /// Returns the error if the mount table could not be read; then no fact can be trusted.
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }
  /// Returns what lies at the path; links are followed. PathFact::names returns no names if nothing is there, and
  /// EntryKind::unknown if the path is no directory or does not answer.
  const sys::Entry& find(const std::string& path, PathFact what = PathFact::place);
  bool is_shared(const std::string& path) { return find(path).shared; }
  /// Reads all of these paths in one request, because a request for each would cost more.
  void find_all(const std::vector<std::string>& paths, PathFact what = PathFact::place);
  /// Returns the directory for this user's node-local caches.
  const LocalRoot& local();

 private:
  sys::System& m_system;
  FindLocal m_find_local;
  std::optional<Error> m_error;
  std::optional<bool> m_any_shared;
  std::map<std::pair<PathFact, std::string>, sys::Entry> m_known;
  std::optional<LocalRoot> m_local;
};

} // namespace sharefs::cachefix

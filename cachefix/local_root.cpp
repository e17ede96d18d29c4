#include "cachefix/local_root.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <unistd.h>

namespace sharefs::cachefix {
namespace {

/// A directory that this user may have for his own, or why not.
struct Candidate {
  std::string own;
  std::string exists; ///< itself, or its nearest existing ancestor, as resolved
  std::string why_not;
};

class Search {
 public:
  Search(sys::System& system, sys::Resolver& resolver, const sys::Identity& identity)
      : m_system(system), m_resolver(resolver), m_identity(identity),
        m_prefix(system.files().is_live() ? "" : system.files().root()) {}

  /// `directory` holds the users' directories, `own` is this user's. /var/cache/sharefs is made by root as 1777.
  Candidate candidate(const std::string& directory, const std::string& own) {
    Candidate found{own, "", ""};
    const sys::Place at = m_resolver.resolve(own);
    if (at.shared) {
      found.why_not = directory + " lies on shared storage (" + at.fs_type + ")";
      return found;
    }
    found.exists = at.resolved;
    const auto info = m_system.files().info(at.resolved);
    if (info && *info) {
      if ((*info)->kind != sys::FileInfo::Kind::directory || (*info)->uid != m_identity.uid)
        found.why_not = own + " is not a directory of yours";
      else if (!writable(at.resolved))
        found.why_not = own + " cannot be written";
      return found;
    }
    do
      found.exists = parent_path(found.exists);
    while (found.exists != "/" && ::access((m_prefix + found.exists).c_str(), F_OK) != 0);
    if (!writable(found.exists))
      found.why_not = found.exists + " cannot be written";
    return found;
  }

  /// Free bytes; why_not is set if they, or the free inodes, are too few.
  std::uint64_t room(Candidate& candidate, std::uint64_t min_free_bytes) {
    sys::PathProbeRequest request;
    request.path = m_prefix + candidate.exists;
    const auto probes = m_system.probe_paths({request});
    if (probes.empty() || probes.front().health != sys::PathHealth::ok) {
      candidate.why_not = candidate.exists + " does not answer";
      return 0;
    }
    const sys::PathProbe& probe = probes.front();
    if (probe.free_bytes < min_free_bytes)
      candidate.why_not = candidate.own + " has " + format_bytes(probe.free_bytes) + " free, caches.min_free is " +
                          format_bytes(min_free_bytes);
    else if (probe.files > 0 && probe.free_files < k_least_free_inodes) // btrfs counts none
      candidate.why_not = candidate.own + " has only " + count_of(probe.free_files, "free inode");
    return probe.free_bytes;
  }

 private:
  [[nodiscard]] bool writable(const std::string& path) const {
    return ::access((m_prefix + path).c_str(), W_OK | X_OK) == 0;
  }

  sys::System& m_system;
  sys::Resolver& m_resolver;
  const sys::Identity& m_identity;
  std::string m_prefix;
};

} // namespace

std::string directory_name_of(const std::string& user, unsigned uid) {
  const bool plain = !user.empty() && user.size() <= 32 && user.front() != '.' && user.front() != '-' &&
                     std::all_of(user.begin(), user.end(), [](unsigned char c) {
                       return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-');
                     });
  return plain ? user : "uid-" + std::to_string(uid);
}

LocalRoot find_local_root(sys::System& system, sys::Resolver& resolver, const LocalChoice& choice,
                          const sys::Identity& identity) {
  const std::string name = directory_name_of(identity.user, identity.uid);
  Search search(system, resolver, identity);
  LocalRoot root;
  std::uint64_t most = 0;
  std::string problems;
  const auto consider = [&](const std::string& directory, const std::string& own) {
    Candidate candidate = search.candidate(directory, own);
    const std::uint64_t free = candidate.why_not.empty() ? search.room(candidate, choice.min_free_bytes) : 0;
    if (!candidate.why_not.empty()) {
      problems += (problems.empty() ? "" : "; ") + candidate.why_not;
    } else if (root.directory.empty() || free > most) {
      root.directory = candidate.own;
      most = free;
    }
  };
  for (const std::string& directory : choice.directories)
    consider(directory, join_path(normalize_path(directory), name));
  if (!root.directory.empty())
    return root;
  const std::string own = "/var/tmp/sharefs-" + name;
  consider(own, own);
  root.fallback = !root.directory.empty();
  root.problem = problems;
  return root;
}

} // namespace sharefs::cachefix

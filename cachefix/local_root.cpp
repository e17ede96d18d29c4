#include "cachefix/local_root.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <random>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_random_characters = 6;

/// A directory for all users, and what this user has in it.
struct Candidate {
  std::string above;            ///< the directory for all users
  std::string name;             ///< of this user's own one
  std::vector<std::string> own; ///< paths of those that exist and are this user's alone
  std::string path;             ///< to use: one of `own`, or to be made; empty: see why_not
  std::string exists;           ///< `path`, or the nearest directory above that exists
  std::string why_not;
  bool taken = false; ///< somebody else has made above/name
};

sys::EntryQuery query_of(const std::string& path) {
  sys::EntryQuery query;
  query.path = path;
  query.links = sys::Links::trusted;
  query.guarded = true;
  query.access = true;
  return query;
}

std::vector<sys::Entry> look(sys::System& system, std::vector<sys::EntryQuery> queries) {
  sys::EntryRequest request;
  request.queries = std::move(queries);
  return system.entries(request);
}

/// USER, or USER.XXXXXX.
bool is_name_of(const std::string& found, const std::string& name) {
  return found == name || (found.size() == name.size() + 1 + k_random_characters && found.starts_with(name + "."));
}

std::string random_name(const std::string& name) {
  static constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device source; // nobody can guess it and make it first
  std::string out = name + ".";
  for (std::size_t i = 0; i < k_random_characters; ++i)
    out += k_letters[source() % k_letters.size()];
  return out;
}

/// Others could put another directory in its place: what the directory above lets them do.
std::string exchangeable(const sys::Entry& above, const sys::Identity& identity) {
  if (above.uid != 0 && above.uid != identity.uid)
    return above.path + " belongs to uid " + std::to_string(above.uid);
  if ((above.mode & 022U) != 0 && (above.mode & 01000U) == 0)
    return "others may write to " + above.path + ", which has no sticky bit";
  return {};
}

/// What is there, and which path to use; `why_not` where none is safe.
void check(sys::System& system, Candidate& candidate, const sys::Entry& above, const sys::Identity& identity) {
  const std::string first = join_path(candidate.above, candidate.name);
  if (above.shared) {
    candidate.why_not = candidate.above + " lies on shared storage (" + above.fs_type + ")";
  } else if (above.kind == sys::EntryKind::missing) {
    candidate.path = first;
    candidate.exists = above.ancestor;
  } else if (above.kind == sys::EntryKind::unknown) {
    candidate.why_not = above.error().message;
  } else if (above.kind != sys::EntryKind::directory) {
    candidate.why_not = candidate.above + " is not a directory";
  } else {
    candidate.why_not = exchangeable(above, identity);
  }
  if (!candidate.why_not.empty() || !candidate.path.empty())
    return;
  std::vector<sys::EntryQuery> queries{query_of(first)};
  for (const std::string& name : above.names)
    if (name != candidate.name && is_name_of(name, candidate.name))
      queries.push_back(query_of(join_path(candidate.above, name)));
  for (sys::EntryQuery& query : queries)
    query.guarded = false; // the way there was checked with `above`; here the owner decides
  for (const sys::Entry& entry : look(system, std::move(queries))) {
    const bool ours = entry.kind == sys::EntryKind::directory && entry.uid == identity.uid;
    const bool open = ours && (entry.mode & 022U) != 0;
    if (entry.path == first && entry.shared)
      candidate.why_not = first + " lies on shared storage (" + entry.fs_type + ")";
    else if (entry.path == first && open)
      candidate.why_not = "others may write to " + first;
    else if (ours && !open && !entry.shared)
      candidate.own.push_back(entry.path);
    else if (entry.path == first)
      candidate.taken = entry.kind != sys::EntryKind::missing;
  }
  if (!candidate.why_not.empty())
    return;
  if (!candidate.own.empty()) {
    candidate.path = candidate.exists = candidate.own.front();
  } else {
    candidate.path = candidate.taken ? join_path(candidate.above, random_name(candidate.name)) : first;
    candidate.exists = candidate.above;
  }
}

std::vector<Candidate> candidates_of(sys::System& system, const LocalChoice& choice, const sys::Identity& identity) {
  const std::string name = directory_name_of(identity.user, identity.uid);
  std::vector<Candidate> candidates;
  std::vector<sys::EntryQuery> queries;
  const auto add = [&](const std::string& above, const std::string& own) {
    candidates.push_back({above, own, {}, {}, {}, {}, false});
    sys::EntryQuery query = query_of(above);
    query.follow = true;
    query.list = true;
    queries.push_back(std::move(query));
  };
  for (const std::string& directory : choice.directories)
    add(normalize_path(directory), name);
  add("/var/tmp", "sharefs-" + name);
  const auto entries = look(system, std::move(queries));
  for (std::size_t i = 0; i < candidates.size(); ++i)
    check(system, candidates[i], entries[i], identity);
  return candidates;
}

/// Free bytes; why_not is set where they, or the free inodes, are too few, or it cannot be written.
std::uint64_t room(Candidate& candidate, const sys::Entry& there, std::uint64_t min_free_bytes) {
  if (!there.space) {
    candidate.why_not = there.error_number != 0 ? there.error().message : candidate.exists + " does not answer";
    return 0;
  }
  if (!there.writable)
    candidate.why_not = candidate.exists + " cannot be written";
  else if (there.space->free_bytes < min_free_bytes)
    candidate.why_not = candidate.path + " has " + format_bytes(there.space->free_bytes) +
                        " free, caches.min_free is " + format_bytes(min_free_bytes);
  else if (there.space->files > 0 && there.space->free_files < k_least_free_inodes) // btrfs counts none
    candidate.why_not = candidate.path + " has only " + count_of(there.space->free_files, "free inode");
  return there.space->free_bytes;
}

} // namespace

std::string directory_name_of(const std::string& user, unsigned uid) {
  const bool plain = !user.empty() && user.size() <= 32 && user.front() != '.' && user.front() != '-' &&
                     std::all_of(user.begin(), user.end(), [](unsigned char c) {
                       return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-');
                     });
  return plain ? user : "uid-" + std::to_string(uid);
}

LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity) {
  std::vector<Candidate> candidates = candidates_of(system, choice, identity);
  std::vector<sys::EntryQuery> queries;
  for (const Candidate& candidate : candidates) {
    sys::EntryQuery query;
    query.path = candidate.exists.empty() ? "/" : candidate.exists;
    query.follow = true;
    query.access = true;
    query.space = true;
    queries.push_back(std::move(query));
  }
  const auto spaces = look(system, std::move(queries));
  const Candidate* best = nullptr;
  std::uint64_t most = 0;
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    const bool fallback = i + 1 == candidates.size();
    if (fallback && best != nullptr)
      break;
    const std::uint64_t free = candidate.why_not.empty() ? room(candidate, spaces[i], choice.min_free_bytes) : 0;
    if (!candidate.why_not.empty()) {
      problems.push_back(candidate.why_not);
    } else if (best == nullptr || free > most) {
      best = &candidate;
      most = free;
    }
  }
  const std::string install = "run `install -d -m 1777 /var/cache/sharefs` as root";
  if (best == nullptr)
    return {"", join(problems, "; "), install + ", or set caches.local in sharefs.yaml"};
  const std::string first = join_path(best->above, best->name);
  if (best->taken)
    return {best->path, first + " belongs to somebody else", "as root, remove " + first};
  return best == &candidates.back() ? LocalRoot{best->path, join(problems, "; "), install}
                                    : LocalRoot{best->path, "", ""};
}

std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice,
                                         const sys::Identity& identity) {
  std::vector<std::string> all;
  for (const Candidate& candidate : candidates_of(system, choice, identity))
    all.insert(all.end(), candidate.own.begin(), candidate.own.end());
  return all;
}

} // namespace sharefs::cachefix

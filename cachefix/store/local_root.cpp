#include "cachefix/store/local_root.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_random_characters = 6;

/// A directory for all users, and what this user has in it.
struct Candidate {
  std::string above;                 ///< the directory for all users
  std::string name;                  ///< of this user's own one
  std::vector<std::string> own = {}; ///< paths of those that exist and are this user's alone
  std::string path = {};             ///< to use: one of `own`, or to be made; empty: see why_not
  std::string exists = {};           ///< `path`, or the nearest directory above that exists
  std::string why_not = {};
  std::string cure = {};  ///< of why_not: one line that a person can follow
  bool missing = false;   ///< `above` is not there
  std::string taken = {}; ///< why above/name is not used, and another name is
  bool taken_by = false;  ///< it is somebody else's
  bool memory = false;    ///< a tmpfs that caches.local does not name
  bool given = false;     ///< LocalDirectory::given
};

constexpr const char* k_default = "/var/cache/sharefs";

/// A name, or a part of one, that nothing changes.
bool is_plain(const std::string& name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
         std::string::npos;
}

bool is_memory(const sys::Entry& entry) {
  return entry.fs_type == "tmpfs" || entry.fs_type == "ramfs" || entry.fs_type == "rootfs";
}

/// The same on every node.
std::string letters_of(uid_t uid) {
  std::string letters(k_random_characters, 'a');
  for (char& letter : letters) {
    letter = static_cast<char>('a' + uid % 26);
    uid /= 26;
  }
  return letters;
}

/// USER, or USER.XXXXXX.
bool is_name_of(const std::string& found, const std::string& name) {
  return found == name || (found.size() == name.size() + 1 + k_random_characters && found.starts_with(name + "."));
}

bool has_option(const std::string& options, std::string_view word) {
  return std::ranges::count(split(options, ','), word) > 0;
}

constexpr const char* k_another = "set caches.local in sharefs.yaml to a directory on this host's own disk";

void refuse(Candidate& candidate, std::string why_not, std::string cure) {
  candidate.why_not = std::move(why_not);
  candidate.cure = std::move(cure);
}

std::string as_root(const std::string& command) {
  return "run `" + command + "` as root";
}

/// Others could put another directory in its place: what the directory above lets them do.
void check_exchangeable(Candidate& candidate, const sys::Entry& above, const sys::Identity& identity) {
  const auto path = shell_quote(above.path);
  if (above.uid != 0 && above.uid != identity.uid)
    refuse(candidate, above.path + " belongs to uid " + std::to_string(above.uid),
           as_root("chown root:root " + path + " && chmod 1777 " + path));
  else if ((above.mode & 022U) != 0 && (above.mode & 01000U) == 0)
    refuse(candidate, "others may write to " + above.path + ", which has no sticky bit", as_root("chmod 1777 " + path));
}

/// Why this user's own name is not used as it is there; empty: it can be.
std::string why_taken(const sys::Entry& entry, const sys::Identity& identity) {
  if (entry.kind == sys::EntryKind::missing)
    return {};
  if (entry.kind == sys::EntryKind::unknown)
    return entry.error().message;
  if (entry.uid != identity.uid)
    return entry.path + " belongs to somebody else";
  if (entry.kind != sys::EntryKind::directory)
    return entry.path + (entry.kind == sys::EntryKind::symlink ? " is a link" : " is not a directory");
  if ((entry.mode & 022U) != 0)
    return "others may write to " + entry.path;
  return entry.shared ? entry.path + " lies on shared storage (" + entry.fs_type + ")" : "";
}

/// What is there, and which path to use; `why_not` where none is safe.
void check(sys::System& system, Candidate& candidate, const sys::Entry& above, const LocalChoice& choice,
           const sys::Identity& identity) {
  const std::string first = join_path(candidate.above, candidate.name);
  if (above.shared) {
    refuse(candidate, candidate.above + " lies on shared storage (" + above.fs_type + ")", k_another);
  } else if (above.kind == sys::EntryKind::missing) {
    candidate.path = first;
    candidate.exists = above.ancestor;
    candidate.missing = true;
  } else if (above.kind == sys::EntryKind::unknown) {
    refuse(candidate, above.error().message, k_another);
  } else if (above.kind != sys::EntryKind::directory) {
    refuse(candidate, candidate.above + " is not a directory",
           as_root("rm " + shell_quote(candidate.above) + " && install -d -m 1777 " + shell_quote(candidate.above)));
  } else {
    check_exchangeable(candidate, above, identity);
  }
  if (!candidate.why_not.empty() || !candidate.path.empty())
    return;
  // The way there was checked with `above`; here the owner decides.
  std::vector<sys::EntryQuery> queries{{.path = first, .access = true, .links = sys::Links::trusted}};
  for (const std::string& name : above.names)
    if (name != candidate.name && is_name_of(name, candidate.name))
      queries.push_back({.path = join_path(candidate.above, name), .access = true, .links = sys::Links::trusted});
  for (const sys::Entry& entry : system.entries({.queries = std::move(queries), .as = choice.as})) {
    const std::string taken = why_taken(entry, identity);
    if (entry.kind == sys::EntryKind::directory && taken.empty()) {
      candidate.own.push_back(entry.path);
    } else if (entry.path == first) {
      candidate.taken = taken;
      candidate.taken_by = entry.uid != identity.uid;
    }
  }
  if (!candidate.own.empty()) {
    candidate.path = candidate.exists = candidate.own.front();
  } else {
    // The ranks of a job start at once and must agree; whoever took that name too gets one that nobody can guess.
    const std::string second = first + "." + letters_of(identity.uid);
    const bool free = std::ranges::find(above.names, base_name(second)) == above.names.end();
    candidate.path = candidate.taken.empty() ? first
                     : free                  ? second
                                             : first + "." + random_letters(k_random_characters);
    candidate.exists = candidate.above;
  }
}

std::vector<Candidate> candidates_of(sys::System& system, const LocalChoice& choice, const sys::Identity& identity) {
  const std::string name = directory_name_of(identity.user, identity.uid);
  std::vector<Candidate> candidates;
  std::vector<sys::EntryQuery> queries;
  const auto add = [&](const LocalDirectory& above, const std::string& own) {
    candidates.push_back(
        {.above = above.path, .name = own, .why_not = above.why_not, .cure = k_another, .given = above.given});
    queries.push_back({.path = above.path.empty() ? "/" : above.path,
                       .follow = true,
                       .list = true,
                       .access = true,
                       .links = sys::Links::trusted,
                       .guarded = true});
  };
  for (const std::string& directory : choice.directories)
    add(expand_directory(directory, choice.environment), name);
  add({"/var/tmp", {}, false}, "sharefs-" + name);
  const auto entries = system.entries({.queries = std::move(queries), .as = choice.as});
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].why_not.empty()) {
      candidates[i].memory = !candidates[i].given && is_memory(entries[i]);
      check(system, candidates[i], entries[i], choice, identity);
    }
  return candidates;
}

/// The mount point, if what lies there cannot be written by anybody.
std::string read_only_mount(sys::System& system, const std::string& path) {
  const auto mounts = system.mounts();
  const auto* mount = mounts ? mounts->owner_of(path) : nullptr;
  const bool read_only =
      mount != nullptr && (has_option(mount->options, "ro") || has_option(mount->super_options, "ro"));
  return read_only ? mount->target : "";
}

/// Free bytes; why_not is set where they, or the free inodes, are too few, or it cannot be written.
std::uint64_t room(sys::System& system, Candidate& candidate, const sys::Entry& there, std::uint64_t min_free_bytes) {
  const std::string above = shell_quote(candidate.above);
  const std::string prune = "delete old caches with `sharefs cache prune`, or make room there";
  if (!there.space) {
    refuse(candidate, there.error_number != 0 ? there.error().message : candidate.exists + " does not answer",
           k_another);
    return 0;
  }
  const auto wanted = "caches.min_free is " + format_bytes(min_free_bytes);
  if (!there.writable) {
    if (const auto target = read_only_mount(system, there.resolved); !target.empty())
      refuse(candidate, candidate.above + " lies on " + target + ", which is mounted read-only",
             as_root("mount -o remount,rw " + shell_quote(target)));
    else if (candidate.missing)
      refuse(candidate, candidate.above + " is not there", as_root("install -d -m 1777 " + above));
    else
      refuse(candidate, candidate.exists + " cannot be written",
             as_root((candidate.exists == candidate.above ? "chmod 1777 " : "chmod u+rwx ") +
                     shell_quote(candidate.exists)));
  } else if (there.space->size_bytes > 0 && there.space->size_bytes < min_free_bytes) {
    refuse(candidate, candidate.path + " has " + format_bytes(there.space->size_bytes) + " in all, " + wanted,
           k_another + std::string(" that is larger"));
  } else if (there.space->free_bytes < min_free_bytes) {
    refuse(candidate, candidate.path + " has " + format_bytes(there.space->free_bytes) + " free, " + wanted, prune);
  } else if (there.space->files > 0 && there.space->free_files < k_least_free_inodes) { // btrfs counts none
    refuse(candidate, candidate.path + " has only " + count_of(there.space->free_files, "free inode"), prune);
  }
  return there.space->free_bytes;
}

} // namespace

std::string directory_name_of(const std::string& user, unsigned uid) {
  const bool plain = !user.empty() && user.size() <= 32 && user.front() != '.' && user.front() != '-' && is_plain(user);
  return plain ? user : "uid-" + std::to_string(uid);
}

LocalDirectory expand_directory(const std::string& directory, const std::vector<std::string>& environment) {
  LocalDirectory result;
  const auto path = expand_variables(directory, [&](std::string_view name, std::size_t at) {
    if (!result.why_not.empty())
      return std::optional<std::string>("");
    const std::string start = std::string(name) + "=";
    const auto entry = std::ranges::find_if(environment, [&](const auto& one) { return one.starts_with(start); });
    std::string value = entry == environment.end() ? "" : entry->substr(start.size());
    if (value.empty())
      result.why_not = directory + ": " + std::string(name) + " is not set";
    else if (at == 0 ? !value.starts_with('/') : value.find('/') != std::string::npos || value == "..")
      result.why_not = directory + ": " + std::string(name) + (at == 0 ? " is no absolute path" : " is no name");
    else if (!std::ranges::all_of(split(value, '/'), is_plain))
      result.why_not = directory + ": " + std::string(name) + " has characters that launchers would change";
    return std::optional<std::string>(result.why_not.empty() ? value : "");
  });
  if (!path && result.why_not.empty())
    result.why_not = directory + ": a `$` in front of no variable";
  if (result.why_not.empty())
    result.path = normalize_path(*path);
  result.given = result.path == directory && directory != k_default;
  return result;
}

Diagnoses diagnose(const LocalRoot& root, Severity severity) {
  const std::string caches = root.holds == Holds::code ? "compiled caches" : "the caches";
  if (root.directory.empty())
    return {{severity, "SF405", "caches.local",
             "no directory on this host's own disks can hold " + caches + ": " + root.problem, root.hint, ""}};
  if (root.problem.empty())
    return {};
  return {{root.memory ? Severity::warning : Severity::info, "SF414", to_utf8(root.directory),
           "holds " + caches + ", because " + root.problem, root.hint, ""}};
}

namespace {

LocalRoot find_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity, Holds holds) {
  std::vector<Candidate> candidates = candidates_of(system, choice, identity);
  const auto mounts = holds == Holds::code ? system.mounts() : sys::MountTable();
  std::vector<sys::EntryQuery> queries;
  for (const Candidate& candidate : candidates)
    queries.push_back(
        {.path = candidate.exists.empty() ? "/" : candidate.exists, .follow = true, .space = true, .access = true});
  const auto spaces = system.entries({.queries = std::move(queries), .as = choice.as});
  const Candidate* const fallback = &candidates.back();
  // Disks before memory, the configured ones before /var/tmp, and then by free space.
  const auto rank = [&](const Candidate* one) { return (one->memory ? 0 : 2) + (one == fallback ? 0 : 1); };
  const Candidate* best = nullptr;
  std::uint64_t most = 0;
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    if (const auto* mount = mounts ? mounts->owner_of(spaces[i].resolved) : nullptr;
        candidate.why_not.empty() && mount != nullptr && has_option(mount->options, "noexec"))
      refuse(candidate, candidate.path + " lies on " + mount->target + ", which is mounted noexec",
             "set caches.local in sharefs.yaml to a directory that is not mounted noexec");
    const std::uint64_t free =
        candidate.why_not.empty() ? room(system, candidate, spaces[i], choice.min_free_bytes) : 0;
    if (!candidate.why_not.empty()) {
      if (&candidate != fallback || best == nullptr || best->memory)
        problems.push_back(candidate.why_not);
    } else if (best == nullptr || rank(&candidate) > rank(best) || (rank(&candidate) == rank(best) && free > most)) {
      best = &candidate;
      most = free;
    }
  }
  // The cure of the first one that a person has named, or that is there without being named.
  const auto broken = std::ranges::find_if(candidates, [](const Candidate& one) { return !one.why_not.empty(); });
  const std::string cure = broken == candidates.end() ? std::string(k_another) : broken->cure;
  if (best == nullptr)
    return {"", join(problems, "; "), cure};
  const std::string first = join_path(best->above, best->name);
  if (best->memory) {
    problems.push_back(best->above + " is memory (tmpfs), and no disk can be used");
    return {best->path, join(problems, "; "),
            broken == candidates.end() ? "set caches.local in sharefs.yaml to a directory on a disk" : cure, true};
  }
  if (!best->taken.empty())
    return {best->path, best->taken, (best->taken_by ? "as root, remove " : "remove ") + first};
  if (best != fallback)
    return {best->path, "", ""};
  for (const Candidate& candidate : candidates)
    if (candidate.memory)
      problems.push_back(candidate.above + " is memory (tmpfs)");
  return {best->path, join(problems, "; "), cure};
}

} // namespace

LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity, Holds holds) {
  auto user = identity;
  if (choice.as) {
    user.user = choice.as->name;
    user.uid = choice.as->uid;
  }
  LocalRoot root = find_root(system, choice, user, holds);
  root.holds = holds;
  return root;
}

std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice,
                                         const sys::Identity& identity) {
  std::vector<std::string> all;
  for (const Candidate& candidate : candidates_of(system, choice, identity))
    all.insert(all.end(), candidate.own.begin(), candidate.own.end());
  return all;
}

} // namespace sharefs::cachefix

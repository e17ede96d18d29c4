#include "cachefix/store/local_root.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/table.hpp"
#include "sys/fs/lock_probe.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr const char* k_exec = "set caches.local in sharefs.yaml to a directory that is not mounted noexec";
constexpr const char* k_default = "/var/cache/sharefs";
constexpr const char* k_another = "set caches.local in sharefs.yaml to a directory on this host's own disk";

/// A directory for all users, and this user's own directory in it.
struct Candidate {
  std::string above;
  LocalRoot root = {};     ///< its `problem` says why this user's directory cannot be used; empty: it can
  bool given = false;      ///< caches.local names this path itself, and it is not the default
  bool is_own = false;     ///< the directory exists, and only this user can write to it
  std::string exists = {}; ///< the directory, or the nearest one above it that exists

  [[nodiscard]] bool is_usable() const { return root.problem.empty(); }
  void refuse(std::string why, std::string how) {
    root.problem = std::move(why);
    root.hint = std::move(how);
  }
};

/// True if launchers and shells leave all characters of the name alone.
bool is_plain(const std::string& name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
         std::string::npos;
}

/// Returns the name of a user's directory; it is different for different users, each of whom may be root in a user
/// namespace.
std::string directory_name_of(const sys::Identity& identity) {
  const auto& user = identity.user;
  const bool plain = !user.empty() && user.size() <= 32 && user.front() != '.' && user.front() != '-' && is_plain(user);
  const bool is_other = identity.uid == 0 && identity.outside_uid != 0;
  return plain && !is_other ? user : "uid-" + std::to_string(is_other ? identity.outside_uid : identity.uid);
}

std::string as_root(const std::string& command) {
  return "run `" + command + "` as root";
}

/// Checks the directory for all users. Others could replace the files in it if it belongs to neither root nor this
/// user, or if they may write to it and it has no sticky bit.
void check_above(Candidate& candidate, const sys::Entry& above, const sys::Identity& identity) {
  const std::string path = shell_quote(above.path);
  if (above.shared)
    candidate.refuse(candidate.above + " lies on shared storage (" + above.fs_type + ")", k_another);
  else if (above.kind == sys::EntryKind::unknown)
    candidate.refuse(above.error().message, k_another);
  else if (above.kind == sys::EntryKind::missing)
    candidate.exists = above.ancestor;
  else if (above.kind != sys::EntryKind::directory)
    candidate.refuse(candidate.above + " is not a directory", as_root("rm " + path + " && install -d -m 1777 " + path));
  else if (above.uid != 0 && above.uid != identity.uid)
    candidate.refuse(above.path + " belongs to uid " + std::to_string(above.uid),
                     as_root("chown root:root " + path + " && chmod 1777 " + path));
  else if ((above.mode & 022U) != 0 && (above.mode & 01000U) == 0)
    candidate.refuse("others may write to " + above.path + ", which has no sticky bit", as_root("chmod 1777 " + path));
}

/// Returns why what has this user's name is no directory that only this user can write to; empty if it is one, or if
/// nothing is there.
std::string why_not_own(const sys::Entry& own, unsigned uid) {
  return own.kind == sys::EntryKind::missing     ? ""
         : own.kind == sys::EntryKind::unknown   ? own.error().message
         : own.uid != uid                        ? own.path + " belongs to somebody else"
         : own.kind == sys::EntryKind::symlink   ? own.path + " is a link"
         : own.kind != sys::EntryKind::directory ? own.path + " is not a directory"
         : (own.mode & 022U) != 0                ? "others may write to " + own.path
         : own.shared                            ? own.path + " lies on shared storage (" + own.fs_type + ")"
                                                 : "";
}

/// Checks the file or directory that has this user's name.
void check_own(Candidate& candidate, const sys::Entry& own, const sys::Identity& identity) {
  const bool others = own.uid != identity.uid, directory = own.kind == sys::EntryKind::directory;
  if (candidate.exists.empty())
    candidate.exists = directory ? candidate.root.directory : candidate.above;
  const std::string why = why_not_own(own, identity.uid);
  if (!why.empty())
    candidate.refuse(why, (others ? "as root, remove " : "remove ") + own.path);
  candidate.is_own = directory && why.empty();
  candidate.root.taken = own.exists() && others;
}

/// Returns the directories of caches.local and, last, the one in /var/tmp; each is checked but for its room.
std::vector<Candidate> candidates_of(sys::System& system, const LocalChoice& choice, const sys::Identity& identity) {
  const std::string name = directory_name_of(identity);
  std::vector<Candidate> candidates;
  for (const std::string& directory : choice.directories) {
    const auto above = expand_directory(directory, choice.environment);
    candidates.push_back({.above = above.value_or("/"),
                          .root = {.directory = above ? join_path(*above, name) : "/"},
                          .given = above == directory && directory != k_default});
    if (!above)
      candidates.back().refuse(above.error().message, k_another);
  }
  candidates.push_back({.above = "/var/tmp", .root = {.directory = "/var/tmp/sharefs-" + name}});
  std::vector<sys::EntryQuery> all_above, all_own;
  for (const Candidate& one : candidates) {
    all_above.push_back(
        {.path = one.above, .follow = true, .access = true, .links = sys::Links::trusted, .guarded = true});
    all_own.push_back({.path = one.root.directory, .access = true, .links = sys::Links::trusted});
  }
  const auto above = system.entries({.queries = std::move(all_above), .as = choice.as});
  const auto own = system.entries({.queries = std::move(all_own), .as = choice.as});
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& one = candidates[i];
    if (one.is_usable())
      check_above(one, above[i], identity);
    if (one.is_usable())
      check_own(one, own[i], identity);
    one.root.memory = !one.given && is_listed(above[i].fs_type, "tmpfs ramfs rootfs");
  }
  return candidates;
}

/// Checks the room for the directory, and that the options of its mount allow its use.
void check_room(sys::System& system, Candidate& candidate, const sys::Entry& there, std::uint64_t min_free_bytes) {
  const std::string prune = "delete old caches with `sharefs cache prune`, or make room there";
  const std::string wanted = "caches.min_free is " + format_bytes(min_free_bytes);
  const auto mounts = system.mounts();
  const auto* mount = mounts ? mounts->owner_of(there.resolved) : nullptr;
  const auto is_mounted = [&](std::string_view option) {
    return mount != nullptr && contains(split(mount->options + "," + mount->super_options, ','), option);
  };
  const std::string& path = candidate.root.directory;
  if (is_mounted("noexec"))
    candidate.root.noexec = path + " lies on " + mount->target + ", which is mounted noexec";
  if (!there.space)
    candidate.refuse(there.error_number != 0 ? there.error().message : candidate.exists + " does not answer",
                     k_another);
  else if (!there.writable && is_mounted("ro"))
    candidate.refuse(candidate.above + " lies on " + mount->target + ", which is mounted read-only",
                     as_root("mount -o remount,rw " + shell_quote(mount->target)));
  else if (!there.writable && !is_under(candidate.exists, candidate.above))
    candidate.refuse(candidate.above + " is not there", as_root("install -d -m 1777 " + shell_quote(candidate.above)));
  else if (!there.writable)
    candidate.refuse(candidate.exists + " cannot be written",
                     as_root((candidate.is_own ? "chmod u+rwx " : "chmod 1777 ") + shell_quote(candidate.exists)));
  else if (there.space->size_bytes > 0 && there.space->size_bytes < min_free_bytes)
    candidate.refuse(path + " has " + format_bytes(there.space->size_bytes) + " in all, " + wanted,
                     k_another + std::string(" that is larger"));
  else if (there.space->free_bytes < min_free_bytes)
    candidate.refuse(path + " has " + format_bytes(there.space->free_bytes) + " free, " + wanted, prune);
  else if (there.space->files > 0 && there.space->free_files < k_least_free_inodes) // btrfs has no number of inodes
    candidate.refuse(path + " has only " + count_of(there.space->free_files, "free inode"), prune);
}

constexpr mode_t k_private = 0700;
constexpr mode_t k_for_all = 01777; // as /tmp has it: every user makes a directory in it

Result<void> make_missing(const sys::Files& files, const std::string& directory, uid_t uid) {
  const auto is_missing = [&](const std::string& path) {
    return files.entry({.path = path, .links = sys::Links::trusted}).kind == sys::EntryKind::missing;
  };
  if (!is_missing(directory))
    return {};
  const std::string above = parent_path(directory);
  if (is_missing(above)) {
    TRY(files.make_directories(parent_path(above)));
    TRY(files.make_directories(above, uid == 0 ? k_for_all : k_private));
  }
  return files.make_directories(directory, k_private);
}

} // namespace

Result<std::string> expand_directory(const std::string& directory, const std::vector<std::string>& environment) {
  std::string why_not = "a `$` in front of no variable";
  const auto value_of = [&](std::string_view name, std::size_t at) -> std::optional<std::string> {
    const std::string start = std::string(name) + "=";
    const auto entry = std::ranges::find_if(environment, [&](const auto& one) { return one.starts_with(start); });
    std::string value = entry == environment.end() ? "" : entry->substr(start.size());
    const bool fits = at == 0 ? value.starts_with('/') : value.find('/') == std::string::npos && value != "..";
    if (!value.empty() && fits && std::ranges::all_of(split(value, '/'), is_plain))
      return value;
    why_not = std::string(name) + (value.empty() ? " is not set"
                                   : fits        ? " has characters that launchers would change"
                                   : at == 0     ? " is no absolute path"
                                                 : " is no name");
    return std::nullopt;
  };
  const auto path = expand_variables(directory, value_of);
  return path ? Result<std::string>(normalize_path(*path)) : fail(ErrorCode::config, directory + ": " + why_not);
}

Diagnosis no_place(const LocalRoot& root, Severity severity) {
  const bool none = root.directory.empty();
  return {severity,
          "SF405",
          "caches.local",
          std::string("no directory on this host's own disks can hold ") +
              (none ? "the caches: " + root.problem : "compiled caches: " + root.noexec),
          none ? root.hint : k_exec,
          ""};
}

Diagnoses diagnose_code(const LocalRoot& root, Severity severity) {
  if (root.noexec.empty())
    return {};
  if (root.for_code.empty())
    return {no_place(root, severity)};
  const std::string memory = root.code_in_memory ? ", and no other disk can be used: it is memory (tmpfs)" : "";
  return {{root.code_in_memory ? Severity::warning : Severity::info, "SF414", to_utf8(root.for_code),
           "holds compiled caches, because " + root.noexec + memory, k_exec, ""}};
}

Diagnoses diagnose(const LocalRoot& root, Severity severity) {
  if (root.directory.empty())
    return {no_place(root, severity)};
  if (root.problem.empty())
    return {};
  return {{root.memory ? Severity::warning : Severity::info, "SF414", to_utf8(root.directory),
           "holds the caches, because " + root.problem, root.hint, ""}};
}

LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity) {
  auto user = identity;
  if (choice.as) {
    user.user = choice.as->name;
    user.uid = choice.as->uid;
  }
  std::vector<Candidate> candidates = candidates_of(system, choice, user);
  std::vector<sys::EntryQuery> queries;
  for (const Candidate& one : candidates)
    queries.push_back({.path = one.exists.empty() ? "/" : one.exists, .follow = true, .space = true, .access = true});
  const auto spaces = system.entries({.queries = std::move(queries), .as = choice.as});
  const Candidate *best = nullptr, *for_code = nullptr; // a disk, or memory if there is no disk
  const auto choose = [](const Candidate*& chosen, const Candidate& one) {
    if (one.is_usable() && (chosen == nullptr || (chosen->root.memory && !one.root.memory)))
      chosen = &one;
  };
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& one = candidates[i];
    if (one.is_usable())
      check_room(system, one, spaces[i], choice.min_free_bytes);
    choose(best, one);
    if (one.root.noexec.empty())
      choose(for_code, one);
  }
  LocalRoot found = best == nullptr ? LocalRoot() : best->root;
  if (!found.noexec.empty() && for_code != nullptr) {
    found.for_code = for_code->root.directory;
    found.code_in_memory = for_code->root.memory;
  }
  for (const Candidate& one : candidates) {
    found.taken = found.taken || one.root.taken;
    if (best != nullptr && !best->root.memory && (&one == best || best != &candidates.back()))
      continue; // no problem is reported if a disk of caches.local is used
    if (found.hint.empty())
      found.hint = one.root.hint;
    if (!one.is_usable())
      problems.push_back(one.root.problem);
    else if (one.root.memory)
      problems.push_back(one.above + " is memory (tmpfs)" + (&one == best ? ", and no disk can be used" : ""));
  }
  if (found.hint.empty() && !problems.empty())
    found.hint = "set caches.local in sharefs.yaml to a directory on a disk";
  found.problem = join(problems, "; ");
  return found;
}

std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice,
                                         const sys::Identity& identity) {
  std::vector<std::string> all;
  for (const Candidate& candidate : candidates_of(system, choice, identity))
    if (candidate.is_own)
      all.push_back(candidate.root.directory);
  return all;
}

std::string cache_key(const std::string& shared_path) {
  // FNV-1a with 64 bits is short, and never changes with a library or a machine.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : normalize_path(shared_path)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  const std::string digits = fmt::format("{:016x}", hash);
  return {digits.rbegin(), digits.rbegin() + 12};
}

Result<void> make_own_directory(sys::System& system, const std::string& directory) {
  const sys::Files& files = system.files();
  const uid_t uid = system.identity().uid;
  TRY(make_missing(files, directory, uid));
  // Other users may write to /var/tmp and to a directory of mode 1777, so one of them may have made this name before.
  const auto found = files.entry({.path = directory, .links = sys::Links::trusted, .guarded = true});
  if (const std::string why = why_not_own(found, uid); !why.empty())
    return fail(ErrorCode::permission, why,
                "run `ls -ld " + shell_quote(directory) + "`, and remove it, or set caches.local in sharefs.yaml");
  TRY_ASSIGN(const auto excluded, sys::locks_exclude(files.real_path(directory)));
  if (!excluded) // the locks of the programs would not protect a cache there
    return fail(ErrorCode::unsupported, directory + ": file locks do not exclude each other there",
                "set caches.local in sharefs.yaml to a directory on another file system");
  return {};
}

Result<void> make_caches(sys::System& system, const std::map<std::string, std::string>& directories) {
  const sys::Files& files = system.files();
  std::set<std::string> own;
  for (const auto& [directory, shared] : directories)
    own.insert(parent_path(directory));
  for (const std::string& directory : own)
    TRY(make_own_directory(system, directory));
  for (const auto& [directory, shared] : directories) {
    if (files.entry({.path = directory}).kind == sys::EntryKind::directory)
      continue;
    // The note is only for people, so an error does not stop the program.
    (void)files.write_if(parent_path(directory) + "/.origin-" + base_name(directory), std::nullopt, shared + "\n",
                         0600);
    TRY(files.make_directories(directory, k_private));
  }
  return {};
}

} // namespace sharefs::cachefix

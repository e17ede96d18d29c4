#include "cachefix/store/local_root.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/lock_probe.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr mode_t k_private = 0700;
constexpr mode_t k_for_all = 01777; // as /tmp has it: every user makes a directory in it

Result<void> make_missing(const sys::Files& files, const std::string& directory, uid_t uid) {
  const auto is_missing = [&](const std::string& path) {
    return files.entry({.path = path, .links = sys::Links::trusted}).kind == sys::EntryKind::missing;
  };
  if (!is_missing(directory))
    return {};
  const std::string above = parent_path(directory);
  Result<void> made;
  if (is_missing(above)) {
    made = files.make_directories(parent_path(above));
    if (made)
      made = files.make_directories(above, uid == 0 ? k_for_all : k_private);
  }
  return made ? files.make_directories(directory, k_private) : made;
}

} // namespace

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
  if (found.kind == sys::EntryKind::unknown)
    return fail(found.error());
  if (found.kind != sys::EntryKind::directory || found.uid != uid)
    return fail(ErrorCode::permission, directory + ": not a directory of yours",
                "as root, remove it, or set caches.local in sharefs.yaml");
  if ((found.mode & 022U) != 0)
    return fail(ErrorCode::permission, directory + ": others may write to it (mode " + format_mode(found.mode) + ")",
                "run `chmod 700 " + directory + "`");
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

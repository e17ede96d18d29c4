#include "cachefix/sanitize.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"
#include "sys/fs/lock_probe.hpp"

namespace sharefs::cachefix {
namespace {

constexpr mode_t k_private = 0700;
constexpr mode_t k_for_all = 01777; // as /tmp: every user gets a directory of his own

/// The user's own directory: his, and nobody else's. /var/tmp and a 1777 directory are open to others, who could have
/// made it before.
Result<void> own_directory(const sys::Files& files, const std::string& directory, uid_t uid) {
  const auto is_missing = [&](const std::string& path) {
    return files.entry({.path = path, .links = sys::Links::trusted}).kind == sys::EntryKind::missing;
  };
  if (is_missing(directory)) {
    const std::string above = parent_path(directory);
    Result<void> made;
    if (is_missing(above)) {
      made = files.make_directories(parent_path(above));
      if (made)
        made = files.make_directories(above, uid == 0 ? k_for_all : k_private);
    }
    if (made)
      made = files.make_directories(directory, k_private);
    if (!made)
      return made;
  }
  const auto found = files.entry({.path = directory, .links = sys::Links::trusted, .guarded = true});
  if (found.kind == sys::EntryKind::unknown)
    return fail(found.error());
  if (found.kind != sys::EntryKind::directory || found.uid != uid)
    return fail(ErrorCode::permission, directory + ": not a directory of yours",
                "as root, remove it, or set caches.local in sharefs.yaml");
  if ((found.mode & 022U) != 0)
    return fail(ErrorCode::permission, directory + ": others may write to it (mode " + format_mode(found.mode) + ")",
                "run `chmod 700 " + directory + "`");
  return {};
}

/// Replaces a path in a word of which it may be a part only: `bash -c '... PATH'`.
void rename_in(std::string& word, const std::string& from, const std::string& to) {
  for (auto at = word.find(from); at != std::string::npos; at = word.find(from, at + to.size()))
    word.replace(at, from.size(), to);
}

/// Makes one copy under its name, or under a name that nobody can guess where that is taken. The new path.
Result<std::string> write_copy(const sys::Files& files, const FileCopy& copy, uid_t uid) {
  std::string path = copy.path;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto there = files.entry({.path = path, .read_bytes = copy.content.size() + 1, .links = sys::Links::trusted});
    if (there.kind == sys::EntryKind::file && there.uid == uid && (there.mode & 022U) == 0 && there.error_number == 0 &&
        there.content == copy.content)
      return path; // of an earlier launch
    if (there.kind == sys::EntryKind::unknown)
      return fail(there.error());
    if (there.kind == sys::EntryKind::missing) {
      auto written = files.write_if(path, std::nullopt, copy.content, 0600);
      if (written)
        return path;
      if (written.error().code != ErrorCode::conflict)
        return fail(written.error());
    }
    path = parent_path(copy.path) + "/.sharefs-" + random_letters(16) + "-" + base_name(copy.path);
  }
  return fail(ErrorCode::conflict, path + ": somebody else makes files of this name");
}

} // namespace

Result<void> prepare(sys::System& system, Sanitized& decision, const LocalRoot& root) {
  if (decision.directories.empty() && decision.copies.empty())
    return {};
  const sys::Files& files = system.files();
  const uid_t uid = system.identity().uid;
  std::set<std::string> roots = decision.roots();
  if (!decision.copies.empty() && !root.directory.empty())
    roots.insert(root.directory);
  for (const std::string& one : roots) {
    if (auto own = own_directory(files, one, uid); !own)
      return own;
    const auto excluded = sys::locks_exclude(files.real_path(one));
    if (!excluded)
      return fail(excluded.error());
    if (!*excluded) // what the caches were moved for: the programs' own locks
      return fail(ErrorCode::unsupported, one + ": file locks do not exclude each other there",
                  "set caches.local in sharefs.yaml to a directory on another file system");
  }
  for (const auto& [directory, shared] : decision.directories) {
    if (auto made = files.make_directories(directory, k_private); !made)
      return made;
    // What it stands for: `sharefs cache list` shows it. Only for people: the program runs without.
    (void)files.write_if(parent_path(directory) + "/.origin-" + base_name(directory), std::nullopt, shared + "\n",
                         0600);
  }
  for (const ModelLink& link : decision.links) {
    const auto made = plan::apply_action(plan::make_link(link.path, link.target), system);
    if (!made && made.error().code != ErrorCode::conflict) // a model that was downloaded here before
      return fail(made.error());
  }
  for (const FileCopy& copy : decision.copies) {
    auto path = write_copy(files, copy, uid);
    if (!path && copy.original.empty())
      return fail(path.error());
    if (!path) {
      decision.diagnoses.push_back({Severity::warning, "SF412", to_utf8(copy.original),
                                    "a changed copy could not be made, so it is used as it is: " + path.error().message,
                                    path.error().hint, ""});
      path = copy.original;
      std::erase_if(decision.decisions, [&](const Decision& one) { return one.to == copy.path; });
    }
    for (Decision& one : decision.decisions) // what is said is what is done
      if (one.to)
        rename_in(*one.to, copy.path, *path);
    for (std::string& word : decision.argv)
      rename_in(word, copy.path, *path);
    for (auto& [name, value] : decision.set)
      rename_in(value, copy.path, *path);
  }
  return {};
}

} // namespace sharefs::cachefix

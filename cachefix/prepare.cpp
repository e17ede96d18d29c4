#include "cachefix/sanitize.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cachefix/store/make_caches.hpp"
#include "plan/apply.hpp"

namespace sharefs::cachefix {
namespace {

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
  for (const std::string& one : roots)
    if (auto own = make_own_directory(system, one); !own)
      return own;
  if (auto made = make_caches(system, decision.directories); !made)
    return made;
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

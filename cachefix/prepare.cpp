#include "cachefix/prepare.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"
#include "sys/fs/lock_probe.hpp"

namespace sharefs::cachefix {
namespace {

constexpr std::chrono::milliseconds k_prepare_deadline{10'000};
constexpr mode_t k_private = 0700;
constexpr mode_t k_for_all = 01777; // as /tmp: every user gets a directory of his own

/// The user's own directory: his, and nobody else's. /var/tmp and a 1777 directory are open to others, who could have
/// made it before.
Result<void> own_directory(const sys::Files& files, const std::string& directory, uid_t uid) {
  auto info = files.info(directory);
  if (!info)
    return fail(info.error());
  if (!*info) {
    const std::string above = parent_path(directory);
    const auto parent = files.info(above);
    if (!parent)
      return fail(parent.error());
    if (!*parent) {
      if (auto made = files.make_directories(parent_path(above)); !made)
        return made;
      if (auto made = files.make_directories(above, uid == 0 ? k_for_all : k_private); !made)
        return made;
    }
    if (auto made = files.make_directories(directory, k_private); !made)
      return made;
    info = files.info(directory);
    if (!info)
      return fail(info.error());
  }
  const auto& found = *info;
  if (!found || found->kind != sys::FileInfo::Kind::directory || found->uid != uid)
    return fail(ErrorCode::permission, directory + ": not a directory of yours",
                "remove it, or set caches.local in sharefs.yaml");
  if ((found->mode & 022U) != 0)
    return fail(ErrorCode::permission, directory + ": others may write to it (mode " + format_mode(found->mode) + ")",
                "run `chmod 700 " + directory + "`");
  return {};
}

} // namespace

Result<void> prepare(sys::System& system, const Sanitized& decision, const LocalRoot& root, uid_t uid) {
  if (decision.directories.empty() && decision.copies.empty())
    return {};
  const sys::Files& files = system.files();
  if (auto own = own_directory(files, root.directory, uid); !own)
    return own;
  const auto excluded = sys::locks_exclude(root.directory);
  if (!excluded)
    return fail(excluded.error());
  if (!*excluded) // what the caches were moved for: the programs' own locks
    return fail(ErrorCode::unsupported, root.directory + ": file locks do not exclude each other there",
                "set caches.local in sharefs.yaml to a directory on another file system");
  for (const std::string& directory : decision.directories) {
    const auto info = files.info(directory);
    if (!info)
      return fail(info.error());
    if (!*info)
      if (auto made = files.make_directories(directory, k_private); !made)
        return made;
  }
  // Which shared path a directory stands for: `sharefs cache list` shows it.
  for (const auto& [directory, shared] : decision.origins) {
    const std::string note = root.directory + "/.origin-" + base_name(directory);
    const auto known = files.info(note);
    if (known && !*known)
      (void)files.write(note, shared + "\n", 0600); // only for people: the program runs without it
  }
  for (const ModelLink& link : decision.links) {
    const auto info = files.info(link.path);
    if (info && *info)
      continue; // a link of an earlier run, or a model that was downloaded here before
    if (auto made = plan::apply_action(plan::MakeLink{link.path, link.target, std::nullopt}, system); !made)
      return fail(made.error());
  }
  // A copy of a configuration file lies beside the original, mostly on the share: in a child, with a deadline.
  for (const FileCopy& copy : decision.copies) {
    const auto written = sys::in_child(std::nullopt, k_prepare_deadline, [&]() -> Result<std::string> {
      if (auto done = files.write(copy.path, copy.content, 0600); !done)
        return fail(done.error());
      return std::string();
    });
    if (!written)
      return fail(written.error());
  }
  return {};
}

} // namespace sharefs::cachefix

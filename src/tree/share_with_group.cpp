// share_with_group(): gives a group access to all entries of a tree.
#include "tree/share_with_group.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/process/fd.hpp"
#include "tree/acl.hpp"
#include "tree/tree_walk.hpp"

#include <cerrno>
#include <sys/xattr.h>

namespace sharefs::tree {

Access access_for_group(const Access& before, bool directory, std::uint32_t gid, std::uint32_t mode) {
  Access after = before;
  after.gid = gid;
  const auto of_owner = (before.mode >> 6U) & (mode >> 3U) & 7U;
  after.mode |= of_owner << 3U;
  if (directory) {
    after.mode |= mode & S_ISGID;
    after.default_acl = default_acl(mode & (0770U | (before.mode & 7U)));
  }
  return after;
}

namespace {

/// True for a program that gains rights by set-id bits or capabilities. chown(2) would clear both.
bool gives_rights(const sys::Fd& fd, const struct stat& status) {
  constexpr mode_t k_any_execute = 0111;
  return (status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
         ((status.st_mode & k_any_execute) != 0 &&
          ::getxattr(sys::by_descriptor(fd.get()).c_str(), "security.capability", nullptr, 0) > 0);
}

/// True if the name by which `fd` (O_PATH) was opened still exists. The kernel appends " (deleted)" to the path of a
/// descriptor whose name was removed, and never removes this mark: a new name, even the same one, is another dentry
/// (proc(5), d_path()). A file whose real name ends so counts as removed.
bool still_named(const sys::Fd& fd) {
  const auto path = sys::read_link(AT_FDCWD, sys::by_descriptor(fd.get()));
  return path && !path->ends_with(" (deleted)");
}

/// True if the name in the tree is the only name of the file. A file with more names may belong to root or another
/// user, and somebody may have linked it into the tree. The order of the two checks matters: a name that still exists
/// after the links were counted was among them.
bool only_in_tree(const sys::Fd& fd, struct stat& status) {
  return ::fstat(fd.get(), &status) == 0 && status.st_nlink == 1 && still_named(fd);
}

class GroupSharer {
 public:
  GroupSharer(const Place& place, const GroupShare& share, const Options& options,
              const sys::ProgressCounters& counters)
      : m_place(place), m_share(share), m_job(options, counters),
        m_walk(m_job, place.path,
               {.entered = [this](const Node& directory) { share_entry(directory.fd, directory.path); },
                .entry = [this](const auto& directory, const auto& entry) { share_file(directory, entry); },
                .failed = [this](int error, const Node& directory) { return note_failure(error, directory.path); }}) {}

  Result<GroupReport> run(sys::Fd tree) {
    const auto done = m_walk.run(std::move(tree));
    return done || m_share.check_only ? Result<GroupReport>(std::move(m_report)) : fail(done.error());
  }

 private:
  void count_changed() {
    const std::lock_guard lock(m_mutex);
    ++m_report.changed;
  }
  void leave(const std::string& relative, const char* what) {
    const std::lock_guard lock(m_mutex);
    ++m_report.left;
    if (m_report.named.size() < GroupReport::k_most_named)
      m_report.named.push_back(relative + ": " + what);
  }
  bool note_failure(int error, const std::string& relative) {
    if (error == EXDEV)
      leave(relative, "a mount");
    else if (error != ENOENT && error != ELOOP)
      m_job.failed(error, join_path(m_place.path, relative));
    return true;
  }

  void share_file(const std::shared_ptr<Node>& directory, const Name& entry) {
    if (entry.type == DT_LNK)
      return;
    const auto relative = directory->below(entry.name);
    struct stat status{};
    const auto fd = open_below(directory->fd.get(), entry.name.c_str(), O_PATH);
    if (!fd || ::fstat(fd.get(), &status) != 0)
      note_failure(errno, relative);
    else if (S_ISDIR(status.st_mode)) // somebody has replaced it by a directory
      m_walk.add_directory(directory, entry.name);
    else
      share_entry(fd, relative);
  }

  void share_entry(const sys::Fd& fd, const std::string& relative) {
    m_job.counters.add(k_files);
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0)
      return m_job.failed(errno, join_path(m_place.path, relative));
    const bool file = S_ISREG(status.st_mode);
    if (S_ISLNK(status.st_mode))
      return;
    if (!S_ISDIR(status.st_mode) && !file)
      return leave(relative, "a special file");
    if (struct stat now{}; file && !only_in_tree(fd, now))
      return leave(relative, "a file with several names (hard links), of which others may lie elsewhere");
    if (file && gives_rights(fd, status))
      return leave(relative, "a program with set-id bits or capabilities");
    const auto path = join_path(m_place.path, relative);
    const auto acl = read_acl(fd.get(), ACL_TYPE_ACCESS, path);
    if (acl && !acl->empty())
      return leave(relative, "it has an ACL");
    const auto before = acl ? read_access(fd.get(), status, path) : fail(acl.error());
    if (!before)
      return m_job.failed(before.error());
    const auto after = access_for_group(*before, !file, m_share.gid, m_share.mode);
    if (same_access(*before, after))
      return;
    if (m_share.check_only) {
      count_changed();
      return m_job.workers.stop(); // one entry is enough for the answer
    }
    struct stat now{}; // if the owner has changed it meanwhile, it is left, and the next run checks it again
    if (::fstat(fd.get(), &now) != 0 || (file && !only_in_tree(fd, now)) || (now.st_mode & 07777U) != before->mode ||
        now.st_gid != before->gid)
      return leave(relative, "it changed meanwhile");
    if (auto set = set_access(fd.get(), *before, after, path); !set)
      m_job.failed(set.error());
    else
      count_changed();
  }

  const Place& m_place;
  const GroupShare& m_share;
  Job m_job;
  TreeWalk m_walk;
  std::mutex m_mutex;
  GroupReport m_report;
};

} // namespace

Result<GroupReport> share_with_group(const Place& place, const GroupShare& share, const Options& options,
                                     const OnProgress& progress) {
  return watched(place.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<GroupReport> {
    TRY_ASSIGN(auto found, find_tree(place));
    return GroupSharer(place, share, options, counters).run(std::move(found.fd));
  });
}

} // namespace sharefs::tree

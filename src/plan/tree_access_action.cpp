// SetTreeAccess: what lies below a directory is given to a group, and taken back by a list. In a child.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/tree_list.hpp"
#include "plan/tree_walk.hpp"
#include "sys/process/call.hpp"
#include "sys/process/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/xattr.h>

namespace sharefs::plan {

template <sys::WireOf<TreeCounts> C> auto wire_fields(C& c) {
  return std::tie(c.changed, c.several_names, c.programs, c.mounts, c.other, c.since, c.failed, c.named,
                  c.first_failure);
}

namespace {

constexpr std::size_t k_batch = 256; ///< changes that are written to the list together, before they are made
constexpr int k_deepest = 1000;      ///< directories in one another: each takes a descriptor

/// A file of which a program gets rights: set-id bits, and capabilities. chown(2) takes both away.
bool gives_rights(const sys::Fd& fd, const struct stat& status) {
  constexpr mode_t k_any_execute = 0111;
  return (status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
         ((status.st_mode & k_any_execute) != 0 &&
          ::getxattr(by_descriptor(fd.get()).c_str(), "security.capability", nullptr, 0) > 0);
}

/// Whether the name that `fd` (O_PATH) was opened by still leads to it. The kernel writes " (deleted)" behind the path
/// of a descriptor whose name is gone, and for good: a new name, be it the same, is another dentry (proc(5), d_path()).
/// A file that is really called so counts as gone.
bool still_named(const sys::Fd& fd) {
  std::array<char, PATH_MAX + 16> path{};
  const auto length = ::readlink(by_descriptor(fd.get()).c_str(), path.data(), path.size());
  return length > 0 && static_cast<std::size_t>(length) < path.size() &&
         !std::string_view(path.data(), static_cast<std::size_t>(length)).ends_with(" (deleted)");
}

/// Whether the file has no name but the one in the tree. Others may lie anywhere: it is a file of root or of another
/// user that somebody linked into the tree. The order matters: a name that is there after the count was there with it.
bool only_in_tree(const sys::Fd& fd, struct stat& status) {
  return ::fstat(fd.get(), &status) == 0 && status.st_nlink == 1 && still_named(fd);
}

Result<TreeRights> rights_of(const sys::Fd& fd, const struct stat& status, const std::string& path) {
  TreeRights rights{status.st_gid, status.st_mode & 07777U, "", ""};
  auto acl = read_acl(fd.get(), ACL_TYPE_ACCESS, path);
  if (!acl)
    return fail(acl.error());
  rights.acl = std::move(*acl);
  if (S_ISDIR(status.st_mode)) {
    auto standard = read_acl(fd.get(), ACL_TYPE_DEFAULT, path);
    if (!standard)
      return fail(standard.error());
    rights.default_acl = std::move(*standard);
  }
  return rights;
}

Result<void> set_rights(const sys::Fd& fd, const TreeRights& from, const TreeRights& to, const std::string& path) {
  // The group first: what the old one may do is not widened for it.
  if (from.gid != to.gid &&
      ::fchownat(fd.get(), "", static_cast<uid_t>(-1), to.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errno_error(errno, path));
  if (!same_acl(from.default_acl, to.default_acl))
    if (auto set = write_acl(fd.get(), ACL_TYPE_DEFAULT, path, to.default_acl); !set)
      return set;
  if (!same_acl(from.acl, to.acl))
    if (auto set = write_acl(fd.get(), ACL_TYPE_ACCESS, path, to.acl); !set)
      return set;
  if (from.gid == to.gid && from.mode == to.mode) // chown(2) may have taken set-id bits
    return {};
  return ::chmod(by_descriptor(fd.get()).c_str(), to.mode) == 0 ? Result<void>{} : fail(errno_error(errno, path));
}

bool same_rights(const TreeRights& a, const TreeRights& b) {
  return a.gid == b.gid && a.mode == b.mode && same_acl(a.acl, b.acl) && same_acl(a.default_acl, b.default_acl);
}

/// Part by part as before or as after: what a process that was killed in the middle leaves.
bool rights_between(const TreeRights& found, const TreeChange& change) {
  const auto& [before, after] = std::tie(change.before, change.after);
  return (found.gid == before.gid || found.gid == after.gid) &&
         (found.mode == before.mode || found.mode == after.mode || found.mode == (before.mode & 01777U)) &&
         (same_acl(found.acl, before.acl) || same_acl(found.acl, after.acl)) &&
         (same_acl(found.default_acl, before.default_acl) || same_acl(found.default_acl, after.default_acl));
}

class TreeGiver {
 public:
  TreeGiver(const SetTreeAccess& action, Phase phase, const TreeList& list, std::atomic<std::uint64_t>& progress)
      : m_action(action), m_phase(phase), m_list(list), m_progress(progress) {}

  Result<TreeCounts> give(sys::Fd tree) {
    auto done = below(std::move(tree), "", 0);
    if (done)
      done = flush();
    if (!done && !m_found)
      return fail(done.error());
    return std::move(m_counts);
  }

  Result<TreeCounts> take_back(const sys::Fd& tree) {
    auto read = m_list.for_each_backwards([&](const TreeChange& change) {
      m_progress.fetch_add(1, std::memory_order_relaxed);
      take_one_back(tree, change);
    });
    if (!read)
      return fail(read.error());
    return std::move(m_counts);
  }

 private:
  struct Pending {
    sys::Fd fd;
    TreeChange change;
  };

  [[nodiscard]] std::string whole(const std::string& relative) const { return join_path(m_action.path, relative); }

  void leave(std::uint64_t& count, const std::string& relative) {
    ++count;
    if (m_counts.named.size() < TreeCounts::k_most_named)
      m_counts.named.push_back(relative);
  }
  void note_failure(const Error& error) {
    if (m_counts.failed++ == 0)
      m_counts.first_failure = error.message;
  }

  Result<void> below(sys::Fd directory, const std::string& relative, int depth) {
    return for_each_name(std::move(directory), whole(relative), [&](int here, const dirent& entry) {
      return entry.d_type == DT_LNK ? Result<void>{} : one(here, entry.d_name, relative, depth);
    });
  }

  Result<void> one(int here, const char* name, const std::string& above, int depth) {
    const auto relative = above.empty() ? name : above + "/" + name;
    m_progress.fetch_add(1, std::memory_order_relaxed);
    auto fd = sys::open_below(here, name, O_PATH);
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
      if (errno == EXDEV)
        leave(m_counts.mounts, relative);
      else if (errno != ENOENT && errno != ELOOP)
        note_failure(errno_error(errno, whole(relative)));
      return {};
    }
    const bool directory = S_ISDIR(status.st_mode);
    sys::Fd inside;
    if (directory && depth < k_deepest) // opened before a batch waits for the list
      inside = sys::Fd(::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory && !inside)
      note_failure(errno_error(depth < k_deepest ? errno : ENAMETOOLONG, whole(relative)));
    if (auto decided = decide(std::move(fd), status, relative); !decided)
      return decided;
    return inside ? below(std::move(inside), relative, depth + 1) : Result<void>{};
  }

  Result<void> decide(sys::Fd fd, const struct stat& status, const std::string& relative) {
    if (S_ISLNK(status.st_mode))
      return {};
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
      leave(m_counts.other, relative);
      return {};
    }
    if (struct stat now{}; S_ISREG(status.st_mode) && !only_in_tree(fd, now)) {
      leave(m_counts.several_names, relative);
      return {};
    }
    if (S_ISREG(status.st_mode) && gives_rights(fd, status)) {
      leave(m_counts.programs, relative);
      return {};
    }
    auto before = rights_of(fd, status, whole(relative));
    if (!before) {
      note_failure(before.error());
      return {};
    }
    auto after = rights_for_group(*before, S_ISDIR(status.st_mode), m_action.gid, m_action.mode);
    if (same_rights(*before, after))
      return {};
    if (m_phase == Phase::look) {
      m_found = true;
      m_counts.changed = 1;
      return fail(ErrorCode::interrupted, ""); // one is enough
    }
    m_pending.push_back({std::move(fd), {status.st_ino, std::move(*before), std::move(after), relative}});
    return m_pending.size() < k_batch ? Result<void>{} : flush();
  }

  /// The list first: what is not in it is not changed.
  Result<void> flush() {
    std::string lines;
    for (const auto& pending : m_pending)
      lines += line_of(pending.change);
    if (!lines.empty())
      if (auto written = m_list.append(lines); !written)
        return written;
    for (const auto& [fd, change] : m_pending) {
      struct stat status{};
      // Its owner may have changed it since: his word counts, and the next run looks again.
      if (::fstat(fd.get(), &status) != 0 || (S_ISREG(status.st_mode) && !only_in_tree(fd, status)) ||
          (status.st_mode & 07777U) != change.before.mode || status.st_gid != change.before.gid) {
        leave(m_counts.since, change.path);
        continue;
      }
      if (auto set = set_rights(fd, change.before, change.after, whole(change.path)); !set)
        note_failure(set.error());
      else
        ++m_counts.changed;
    }
    m_pending.clear();
    return {};
  }

  void take_one_back(const sys::Fd& tree, const TreeChange& change) {
    const auto fd = sys::open_below(tree.get(), change.path.c_str(), O_PATH);
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_ino != change.inode ||
        (!S_ISDIR(status.st_mode) && (!S_ISREG(status.st_mode) || !only_in_tree(fd, status))))
      return leave(m_counts.since, change.path);
    const auto found = rights_of(fd, status, whole(change.path));
    if (!found)
      return note_failure(found.error());
    if (same_rights(*found, change.before))
      return;
    if (!rights_between(*found, change))
      return leave(m_counts.since, change.path);
    if (auto set = set_rights(fd, *found, change.before, whole(change.path)); !set)
      return note_failure(set.error());
    ++m_counts.changed;
  }

  const SetTreeAccess& m_action;
  Phase m_phase;
  const TreeList& m_list;
  std::atomic<std::uint64_t>& m_progress;
  std::vector<Pending> m_pending;
  TreeCounts m_counts;
  bool m_found = false;
};

Result<TreeCounts> in_tree(const SetTreeAccess& action, const sys::Files& files, Phase phase,
                           std::atomic<std::uint64_t>& progress) {
  if (action.inode == 0)
    return conflict(action.path, "what the plan was made for", "a plan for none");
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const auto list = TreeList::open(files, action.list, phase == Phase::perform && !action.reverse);
  if (!list)
    return fail(list.error());
  if (action.reverse && !list->exists())
    return TreeCounts{};
  const auto ground = Ground::enter(files.root(), std::nullopt);
  if (!ground)
    return fail(ground.error());
  const auto found = ground->find(action.path, true);
  if (!found)
    return fail(found.error());
  if (!found->is_directory())
    return conflict(action.path, "a directory", found->text());
  struct stat status{};
  sys::Fd tree(::openat(found->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); // which may be a mount's own
  if (!tree || ::fstat(tree.get(), &status) != 0)
    return fail(errno_error(errno, action.path));
  // Numbers of devices may be others after a boot.
  if (auto same = check_identity({action.reverse ? 0 : action.device, action.inode}, status, action.path); !same)
    return fail(same.error());
  if (action.reverse && phase == Phase::look)
    return TreeCounts{.changed = 1};
  TreeGiver giver(action, phase, *list, progress);
  return action.reverse ? giver.take_back(tree) : giver.give(std::move(tree));
}

} // namespace

Result<Outcome> act(SetTreeAccess& action, sys::System& system, Phase phase, const Note& note) {
  void* const shared =
      ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return fail(errno_error(errno, action.path));
  auto& progress = *new (shared) std::atomic<std::uint64_t>(0);
  const auto& files = system.files();
  const auto counts = sys::call(
      std::nullopt, action.deadline, [&]() -> Result<TreeCounts> { return in_tree(action, files, phase, progress); },
      [&] {
        if (const auto seen = progress.load(std::memory_order_relaxed); note && seen > 0)
          note(fmt::format("{} of {}", count_of(seen, "path"), action.path), false);
        return sys::interrupted();
      });
  ::munmap(shared, sizeof progress);
  if (!counts && counts.error().code == ErrorCode::interrupted)
    return fail(ErrorCode::interrupted, action.path + ": stopped on the way down",
                "run the command again, it goes on from here, or `sharefs undo`");
  if (!counts)
    return fail(counts.error());
  if (phase == Phase::look)
    return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
  if (note && (counts->changed > 0 || !counts->named.empty()))
    note(action.path + ": " + text_of(*counts, action.reverse), true);
  if (counts->failed > 0)
    return fail(
        ErrorCode::failed,
        fmt::format("{} could not be changed; the first: {}", count_of(counts->failed, "path"), counts->first_failure),
        "the others are changed; correct this one, and run the command again");
  if (action.reverse)
    if (auto removed = TreeList::remove(files, action.list); !removed)
      return fail(removed.error());
  return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

// SetTreeAccess: what lies below a directory is given to a group. In a child.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/acl.hpp"
#include "plan/tree_rights.hpp"
#include "sys/fs/walk.hpp"
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

/// What became of a tree. What is counted elsewhere than in `changed` was left as it was.
struct TreeCounts {
  static constexpr std::size_t k_most_named = 5;
  std::uint64_t changed = 0;
  std::uint64_t several_names = 0, programs = 0, mounts = 0, other = 0, since = 0, failed = 0;
  std::vector<std::string> named = {}; ///< the first few of those left
  std::string first_failure = {};
};
template <sys::WireOf<TreeCounts> C> auto wire_fields(C& c) {
  return std::tie(c.changed, c.several_names, c.programs, c.mounts, c.other, c.since, c.failed, c.named,
                  c.first_failure);
}

TreeRights rights_for_group(const TreeRights& before, bool directory, std::uint32_t gid, std::uint32_t mode) {
  TreeRights after = before;
  after.gid = gid;
  const auto bits = (before.mode >> 6U) & (mode >> 3U) & 7U; // what the owner has
  if (before.acl.empty()) {
    after.mode |= bits << 3U;
  } else {
    std::uint32_t mask = 0;
    after.acl = acl_with_group(before.acl, bits, mask);
    after.mode = (before.mode & ~070U) | mask << 3U;
    if (same_acl(before.acl, after.acl)) {
      after.acl = before.acl;
      after.mode = before.mode;
    }
  }
  if (directory) {
    after.mode |= mode & S_ISGID;
    after.default_acl = default_acl(mode & (0770U | (before.mode & 7U)));
  }
  return after;
}

namespace {

constexpr int k_deepest = 1000; ///< directories in one another: each takes a descriptor

/// "300012 paths changed; left as they are: 2 files with several names ..."
std::string text_of(const TreeCounts& counts) {
  std::vector<std::string> left;
  for (const auto& [count, what, why] :
       {std::tuple{counts.several_names, "file", " with several names (hard links), of which others may lie elsewhere"},
        {counts.programs, "program", " with set-id bits or capabilities"},
        {counts.mounts, "mount", ""},
        {counts.other, "special file", ""},
        {counts.since, "path", " changed meanwhile"}})
    if (count > 0)
      left.push_back(count_of(count, what) + why);
  auto text = count_of(counts.changed, "path") + " changed";
  if (!left.empty())
    text += fmt::format("; left as they are: {} ({}{})", join(left, ", "), join(counts.named, ", "),
                        counts.named.size() == TreeCounts::k_most_named ? ", ..." : "");
  return text;
}

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

class TreeGiver {
 public:
  TreeGiver(const SetTreeAccess& action, Phase phase, std::atomic<std::uint64_t>& progress)
      : m_action(action), m_phase(phase), m_progress(progress) {}

  Result<TreeCounts> give(sys::Fd tree) {
    const auto done = below(std::move(tree), "", 0);
    const bool is_answered = m_phase == Phase::look && m_counts.changed > 0; // decide() has ended the walk
    if (!done && !is_answered)
      return fail(done.error());
    return std::move(m_counts);
  }

 private:
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
    Result<void> visited;
    const int error = sys::for_each_name(std::move(directory), [&](int here, const dirent& entry) {
      if (entry.d_type != DT_LNK)
        visited = one(here, entry.d_name, relative, depth);
      return visited ? 0 : ECANCELED;
    });
    return !visited || error == 0 ? visited : fail(errno_error(error, whole(relative)));
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
    if (directory && depth < k_deepest)
      inside = sys::Fd(::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory && !inside)
      note_failure(errno_error(depth < k_deepest ? errno : ENAMETOOLONG, whole(relative)));
    if (auto decided = decide(fd, status, relative); !decided)
      return decided;
    return inside ? below(std::move(inside), relative, depth + 1) : Result<void>{};
  }

  Result<void> decide(const sys::Fd& fd, const struct stat& status, const std::string& relative) {
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
      m_counts.changed = 1;
      return fail(ErrorCode::interrupted, ""); // one is enough
    }
    struct stat now{}; // its owner may have changed it since: his word counts, and the next run looks again
    if (::fstat(fd.get(), &now) != 0 || (S_ISREG(now.st_mode) && !only_in_tree(fd, now)) ||
        (now.st_mode & 07777U) != before->mode || now.st_gid != before->gid) {
      leave(m_counts.since, relative);
      return {};
    }
    if (auto set = set_rights(fd, *before, after, whole(relative)); !set)
      note_failure(set.error());
    else
      ++m_counts.changed;
    return {};
  }

  const SetTreeAccess& m_action;
  Phase m_phase;
  std::atomic<std::uint64_t>& m_progress;
  TreeCounts m_counts;
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
  if (auto same = check_identity({action.device, action.inode}, status, action.path); !same)
    return fail(same.error());
  return TreeGiver(action, phase, progress).give(std::move(tree));
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
                "run the command again, it goes on from here");
  if (!counts)
    return fail(counts.error());
  if (phase == Phase::look)
    return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
  if (note && (counts->changed > 0 || !counts->named.empty()))
    note(action.path + ": " + text_of(*counts), true);
  if (counts->failed > 0)
    return fail(
        ErrorCode::failed,
        fmt::format("{} could not be changed; the first: {}", count_of(counts->failed, "path"), counts->first_failure),
        "the others are changed; correct this one, and run the command again");
  return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

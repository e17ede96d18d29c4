// ChangeFiles: other contents, other modes, deletions. In a child, by several threads, in batches: first the new
// contents of a batch reach the disk beside the files, then they take their names.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/child.hpp"
#include "tree/acl.hpp"
#include "tree/attributes.hpp"
#include "tree/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <span>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace sharefs::plan {

struct ChangeCounts {
  std::uint64_t changed = 0, pending = 0, since = 0, failed = 0;
  std::string first = {}; ///< what was left first, and why
};
template <FieldsOf<ChangeCounts> C> auto fields(C& c) {
  return named("changed", c.changed, "pending", c.pending, "since", c.since, "failed", c.failed, "first", c.first);
}

namespace {

constexpr std::size_t k_files_in_batch = 1024;
constexpr std::uint64_t k_bytes_in_batch = 512U << 20U;
constexpr std::uint64_t k_largest_edited = 4ULL << 30U;

enum class FileOutcome {
  already, ///< it is as it should be
  pending, ///< it is as planned, and to be changed
  changed,
  since, ///< it is neither: somebody has changed it since
};

/// The work on one file of a batch.
struct FileWork {
  const FileChange* change = nullptr;
  sys::Fd parent;
  std::string name, temporary; ///< empty: nothing to rename
  struct stat status = {};
  FileOutcome outcome = FileOutcome::already;
  std::optional<Error> error = std::nullopt;
};

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool is_privileged(const sys::Fd& fd, const struct stat& status) {
  return (status.st_mode & (S_ISUID | S_ISGID)) != 0 || ::fgetxattr(fd.get(), "security.capability", nullptr, 0) > 0;
}

Result<std::string> content_of(const sys::Fd& fd, const struct stat& status, const std::string& path) {
  if (static_cast<std::uint64_t>(status.st_size) > k_largest_edited)
    return fail(ErrorCode::failed, path + ": is larger than " + format_bytes(k_largest_edited));
  std::string content;
  content.reserve(static_cast<std::size_t>(status.st_size));
  if (const int error = sys::read_all(fd.get(), content, k_largest_edited); error != 0)
    return fail(errno_error(error, path));
  return content;
}

/// Programs that compare seconds (compiled Python) have to see that the file is another one.
timespec later_than(const timespec& old) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec > old.tv_sec ? now : timespec{old.tv_sec + 1, 0};
}

class FileChanger {
 public:
  FileChanger(const ChangeFiles& action, int tree, Phase phase, const sys::ProgressCounters& counters)
      : m_action(action), m_tree(tree), m_phase(phase), m_counters(counters) {}

  Result<ChangeCounts> run() {
    for (auto rest = std::span(m_action.changes); !rest.empty();) {
      const auto batch = rest.subspan(0, batch_size(rest));
      rest = rest.subspan(batch.size());
      if (auto done = run_batch(batch); !done)
        return fail(done.error());
      if (m_phase == Phase::look && m_counts.pending > 0)
        break; // one is enough
    }
    // The names of one batch reach the disk with the contents of the next.
    if (m_phase == Phase::perform && ::syncfs(m_tree) != 0)
      return fail(errno_error(errno, m_action.path));
    return std::move(m_counts);
  }

 private:
  /// Each file of a batch that gets another content keeps the descriptor of its directory.
  static std::size_t most_files() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0
               ? std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 4, 8, k_files_in_batch)
               : k_files_in_batch;
  }

  [[nodiscard]] std::size_t batch_size(std::span<const FileChange> changes) const {
    if (m_phase == Phase::look)
      return std::min<std::size_t>({changes.size(), 64, m_most_files});
    std::size_t count = 0;
    struct stat status{};
    for (std::uint64_t bytes = 0; count < std::min(changes.size(), m_most_files); ++count) {
      if (!changes[count].edits.empty() &&
          ::fstatat(m_tree, changes[count].path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
        bytes += static_cast<std::uint64_t>(status.st_size);
      if (bytes > k_bytes_in_batch && count > 0)
        break;
    }
    return count;
  }

  Result<void> run_batch(std::span<const FileChange> changes) {
    std::vector<FileWork> works(changes.size());
    tree::in_parallel(m_tree, works.size(), [&](std::size_t i) {
      works[i].change = &changes[i];
      begin(works[i]);
      if (works[i].temporary.empty())
        works[i].parent.reset();
      m_counters.add(tree::k_files);
    });
    const bool written = std::ranges::any_of(works, [](const FileWork& work) { return !work.temporary.empty(); });
    if (written && ::syncfs(m_tree) != 0) {
      const int error = errno;
      for (const auto& work : works)
        if (!work.temporary.empty())
          ::unlinkat(work.parent.get(), work.temporary.c_str(), 0);
      return fail(errno_error(error, m_action.path));
    }
    tree::in_parallel(m_tree, works.size(), [&](std::size_t i) {
      if (!works[i].temporary.empty())
        take_name(works[i]);
      m_counters.add(tree::k_files);
    });
    for (const auto& work : works)
      count(work);
    return {};
  }

  [[nodiscard]] std::string whole(const FileWork& work) const { return join_path(m_action.path, work.change->path); }

  void begin(FileWork& work) const {
    const auto& path = work.change->path;
    const auto slash = path.rfind('/');
    work.name = slash == std::string::npos ? path : path.substr(slash + 1);
    const auto above = slash == std::string::npos ? "." : path.substr(0, slash);
    work.parent = sys::open_below(m_tree, above.c_str(), O_RDONLY | O_DIRECTORY);
    if (!work.parent) {
      if (work.change->removed && errno == ENOENT)
        return;
      work.error = errno_error(errno, whole(work));
    } else if (work.change->removed) {
      remove(work);
    } else if (work.change->before.empty()) {
      set_mode(work);
    } else {
      write(work);
    }
  }

  /// Of the descriptor that is changed: others may have put a file of theirs, or of somebody else, at its name.
  static bool is_planned(const FileWork& work) { return sys::difference(work.change->identity, work.status).empty(); }

  void remove(FileWork& work) const {
    if (::fstatat(work.parent.get(), work.name.c_str(), &work.status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT)
        work.error = errno_error(errno, whole(work));
      return;
    }
    work.outcome = S_ISREG(work.status.st_mode) && is_planned(work) ? FileOutcome::pending : FileOutcome::since;
    if (m_phase == Phase::look || work.outcome == FileOutcome::since)
      return;
    if (::unlinkat(work.parent.get(), work.name.c_str(), 0) != 0 && errno != ENOENT)
      work.error = errno_error(errno, whole(work));
    work.outcome = FileOutcome::changed;
  }

  void set_mode(FileWork& work) const {
    const auto& change = *work.change;
    const auto fd = sys::open_below(work.parent.get(), work.name.c_str(), O_PATH);
    if (!fd || ::fstat(fd.get(), &work.status) != 0) {
      work.error = errno_error(errno, whole(work));
      return;
    }
    const auto mode = work.status.st_mode & 07777U;
    const bool directory = S_ISDIR(work.status.st_mode);
    if (mode == change.mode_after)
      return;
    // A file with several names is left, because another name may lie anywhere.
    const bool ours = is_planned(work) && mode == change.mode_before &&
                      (directory || (S_ISREG(work.status.st_mode) && work.status.st_nlink == 1));
    work.outcome = ours ? FileOutcome::pending : FileOutcome::since;
    if (m_phase == Phase::look || !ours)
      return;
    if (::chmod(tree::by_descriptor(fd.get()).c_str(), *change.mode_after) != 0)
      work.error = errno_error(errno, whole(work));
    work.outcome = FileOutcome::changed;
  }

  /// The new content, under another name.
  void write(FileWork& work) const {
    const auto& change = *work.change;
    const auto fd = sys::open_below(work.parent.get(), work.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd || ::fstat(fd.get(), &work.status) != 0) {
      work.error = errno_error(errno, whole(work));
      return;
    }
    if (!S_ISREG(work.status.st_mode) || is_privileged(fd, work.status)) {
      work.outcome = FileOutcome::since;
      return;
    }
    const auto content = content_of(fd, work.status, whole(work));
    if (!content) {
      work.error = content.error();
      return;
    }
    const auto checksum = sys::sha256(*content);
    if (checksum == change.after)
      return;
    const auto result = checksum == change.before && is_planned(work) ? edited(*content, change.edits) : std::nullopt;
    work.outcome = result && sys::sha256(*result) == change.after ? FileOutcome::pending : FileOutcome::since;
    if (m_phase == Phase::perform && work.outcome == FileOutcome::pending)
      write_beside(work, fd, *result);
  }

  void write_beside(FileWork& work, const sys::Fd& old, const std::string& content) const {
    const auto name = temporary_name(work.name, "new");
    ::unlinkat(work.parent.get(), name.c_str(), 0); // of a run that was killed
    const sys::Fd fd(
        ::openat(work.parent.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) {
      work.error = errno_error(errno, whole(work));
      return;
    }
    work.temporary = name;
    const std::array times{timespec{0, UTIME_OMIT}, later_than(work.status.st_mtim)};
    struct stat made{};
    int error = sys::write_all(fd.get(), content) && ::fstat(fd.get(), &made) == 0 ? 0 : errno;
    if (const auto attributes = tree::read_attributes(old.get()); error == 0)
      error = attributes ? tree::give_attributes(fd.get(), made, work.status, *attributes, true) : attributes.error();
    if (error == 0 &&
        (::fstat(fd.get(), &made) != 0 || made.st_uid != work.status.st_uid || made.st_gid != work.status.st_gid))
      error = EPERM;
    if (error == 0 && ::futimens(fd.get(), times.data()) != 0)
      error = errno;
    if (error == 0)
      return;
    work.error = errno_error(error, whole(work), error == EPERM ? "run it as the owner of the file, or as root" : "");
    ::unlinkat(work.parent.get(), work.temporary.c_str(), 0);
    work.temporary.clear();
  }

  void take_name(FileWork& work) const {
    struct stat now{};
    const bool same =
        ::fstatat(work.parent.get(), work.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 && same_file(now, work.status);
    work.outcome = same ? FileOutcome::changed : FileOutcome::since;
    if (same && ::renameat(work.parent.get(), work.temporary.c_str(), work.parent.get(), work.name.c_str()) == 0)
      return;
    if (same)
      work.error = errno_error(errno, whole(work));
    ::unlinkat(work.parent.get(), work.temporary.c_str(), 0);
  }

  void count(const FileWork& work) {
    if (m_counts.failed + m_counts.since == 0 && (work.error || work.outcome == FileOutcome::since))
      m_counts.first = work.error ? work.error->message : whole(work) + ": is not as planned any more";
    if (work.error)
      ++m_counts.failed;
    else if (work.outcome == FileOutcome::since)
      ++m_counts.since;
    else if (work.outcome == FileOutcome::pending)
      ++m_counts.pending;
    else if (work.outcome == FileOutcome::changed)
      ++m_counts.changed;
  }

  const std::size_t m_most_files = most_files();
  const ChangeFiles& m_action;
  const int m_tree;
  const Phase m_phase;
  const sys::ProgressCounters& m_counters;
  ChangeCounts m_counts;
};

Result<ChangeCounts> change_files(const ChangeFiles& action, const sys::Files& files, Phase phase,
                                  const sys::ProgressCounters& counters) {
  const auto base = ActorRoot::enter(files.root(), std::nullopt);
  if (!base)
    return fail(base.error());
  const auto found = base->find(action.path);
  if (!found)
    return fail(found.error());
  if (!found->is_directory())
    return conflict(action.path, "a directory", found->text());
  struct stat status{};
  const sys::Fd tree(::openat(found->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); // which may be a mount's own
  if (!tree || ::fstat(tree.get(), &status) != 0)
    return fail(errno_error(errno, action.path));
  if (action.inode == 0)
    return conflict(action.path, "what the plan was made for", "a plan for none");
  if (auto same = check_identity({action.device, action.inode}, status, action.path); !same)
    return fail(same.error());
  return FileChanger(action, tree.get(), phase, counters).run();
}

} // namespace

Result<Outcome> act(ChangeFiles& action, sys::System& system, Phase phase, const Note& note) {
  const auto& files = system.files();
  tree::Options options;
  options.deadline = action.deadline;
  const auto counts = tree::watched(
      action.path, options,
      [&](const tree::Progress& progress) {
        // Each file is counted twice: when it is written, and when it has its name.
        if (note && progress.files > 1)
          note(fmt::format("{} of {} in {}", progress.files / 2, count_of(action.changes.size(), "file"), action.path),
               false);
      },
      [&](const sys::ProgressCounters& counters) { return change_files(action, files, phase, counters); });
  if (!counts && counts.error().code == ErrorCode::interrupted)
    return fail(ErrorCode::interrupted, action.path + ": stopped on the way",
                "run the command again, it goes on from here, or `sharefs undo`");
  if (!counts)
    return fail(counts.error());
  if (phase == Phase::look)
    return counts->pending + counts->failed + counts->since > 0 ? Outcome::done : Outcome::unchanged;
  if (const auto left = counts->failed + counts->since; left > 0)
    return fail(ErrorCode::failed,
                fmt::format("{} left as they are; the first: {}", count_of(left, "file"), counts->first),
                "the others are changed; run the command again");
  return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

// ChangeFiles: new contents, new modes, deletions. It runs in a child with several threads. First all new contents are
// written beside the files and synced to the disk, then they are renamed over the files.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"
#include "tree/attributes.hpp"
#include "tree/reader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <functional>
#include <sys/xattr.h>
#include <unistd.h>

namespace sharefs::plan {

struct ChangeCounts {
  std::uint64_t changed = 0, since = 0, failed = 0;
  Error first = {}; ///< why the first file was left
};
template <FieldsOf<ChangeCounts> C> auto fields(C& c) {
  return named("changed", c.changed, "since", c.since, "failed", c.failed, "first", c.first);
}

namespace {

constexpr std::uint64_t k_largest_edited = 4ULL << 30U;

enum class FileOutcome {
  already,       ///< the file was as the change makes it
  changed,       ///< the file was as the plan saw it, and is changed; in Phase::check it is to be changed
  changed_since, ///< the file is neither: somebody has changed it since the plan was made
};

/// The open parent directory of a file, and the file's name in it.
struct OpenParent {
  std::string name;
  sys::Fd parent;
};

/// The state of the work on one file.
struct FileWork {
  FileOutcome outcome = FileOutcome::already;
  std::optional<Error> error = std::nullopt;
  bool written = false;    ///< the new content is written beside the file
  struct stat status = {}; ///< status of the file that is to be replaced
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

/// Returns a modification time for the new file that lies in a later second than the old one, because programs such as
/// Python compare it in whole seconds.
timespec later_than(const timespec& old) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec > old.tv_sec ? now : timespec{old.tv_sec + 1, 0};
}

/// Does the changes of one ChangeFiles, in a child.
class FileChanger {
 public:
  FileChanger(const ChangeFiles& action, int tree, Phase phase, const sys::ProgressCounters& counters)
      : m_action(action), m_tree(tree), m_phase(phase), m_counters(counters), m_works(action.changes.size()) {}

  Result<ChangeCounts> run() {
    for_each_change([this](const FileChange& change, FileWork& work) {
      if (m_phase == Phase::check && m_is_pending) // the check only asks whether there is something to do
        return;
      const auto outcome = prepare(change, work);
      if (outcome)
        work.outcome = *outcome;
      else
        work.error = outcome.error();
      m_is_pending = m_is_pending || work.outcome == FileOutcome::changed;
    });
    if (m_phase == Phase::check)
      return counts();
    const auto find_broken = [this] {
      return std::ranges::find_if(
          m_works, [](const FileWork& work) { return work.error && work.error->code == ErrorCode::failed; });
    };
    const auto unwritten = find_broken();
    const int error = sync();
    for (const std::uint32_t round : {0U, 1U, 2U}) {
      const bool is_left = round == 1 && std::ranges::any_of(m_works, [](const FileWork& work) {
                             return work.error || work.outcome == FileOutcome::changed_since;
                           });
      const bool takes = error == 0 && find_broken() == m_works.end() && !is_left;
      for_each_change([&](const FileChange& change, FileWork& work) {
        if (work.written && std::min(change.round, 2U) == round)
          take_name(change, work, takes);
      });
    }
    // On a full disk, for example, half of the files would not show what is to be done again.
    if (unwritten != m_works.end())
      return fail(*unwritten->error);
    if (const int later = error == 0 ? sync() : error; later != 0)
      return fail(errno_error(later, m_action.path));
    return counts();
  }

 private:
  void for_each_change(const std::function<void(const FileChange&, FileWork&)>& work) {
    tree::in_parallel(m_works.size(), [&](std::size_t i) {
      work(m_action.changes[i], m_works[i]);
      m_counters.add(tree::k_files);
    });
  }
  [[nodiscard]] int sync() const { return ::syncfs(m_tree) == 0 ? 0 : errno; }

  [[nodiscard]] std::string path_of(const FileChange& change) const { return join_path(m_action.path, change.path); }
  [[nodiscard]] OpenParent open_parent(const FileChange& change) const {
    return {change.path.substr(change.path.rfind('/') + 1),
            sys::open_below(m_tree, directory_of(change).c_str(), O_RDONLY | O_DIRECTORY)};
  }
  static std::string directory_of(const FileChange& change) {
    const auto slash = change.path.rfind('/');
    return slash == std::string::npos ? "." : change.path.substr(0, slash);
  }
  /// True if the file is the one that the plan saw. `status` must come from the descriptor that is changed, because
  /// others may have put another file at this name.
  static bool is_planned(const FileChange& change, const struct stat& status) {
    return sys::difference(change.identity, status).empty();
  }

  Result<FileOutcome> prepare(const FileChange& change, FileWork& work) const {
    const auto file = open_parent(change);
    if (!file.parent)
      return change.removed && errno == ENOENT ? Result<FileOutcome>(FileOutcome::already)
                                               : fail(errno_error(errno, path_of(change)));
    if (change.removed)
      return remove(change, file);
    return change.before.empty() ? set_mode(change, file) : write(change, file, work);
  }

  [[nodiscard]] Result<FileOutcome> remove(const FileChange& change, const OpenParent& file) const {
    struct stat status{};
    if (::fstatat(file.parent.get(), file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? Result<FileOutcome>(FileOutcome::already) : fail(errno_error(errno, path_of(change)));
    if (!S_ISREG(status.st_mode) || !is_planned(change, status))
      return FileOutcome::changed_since;
    if (m_phase == Phase::perform && ::unlinkat(file.parent.get(), file.name.c_str(), 0) != 0 && errno != ENOENT)
      return fail(errno_error(errno, path_of(change)));
    return FileOutcome::changed;
  }

  [[nodiscard]] Result<FileOutcome> set_mode(const FileChange& change, const OpenParent& file) const {
    const auto fd = sys::open_below(file.parent.get(), file.name.c_str(), O_PATH);
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0)
      return fail(errno_error(errno, path_of(change)));
    const auto mode = status.st_mode & 07777U;
    if (mode == change.mode_after)
      return FileOutcome::already;
    // A file with several names is left, because another name may lie anywhere.
    const bool one_name = S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_nlink == 1);
    if (!one_name || mode != change.mode_before || !is_planned(change, status))
      return FileOutcome::changed_since;
    if (m_phase == Phase::perform && ::chmod(sys::by_descriptor(fd.get()).c_str(), *change.mode_after) != 0)
      return fail(errno_error(errno, path_of(change)));
    return FileOutcome::changed;
  }

  /// Writes the new content to a file with another name beside the old file.
  Result<FileOutcome> write(const FileChange& change, const OpenParent& file, FileWork& work) const {
    if (m_phase == Phase::perform) // an earlier run may have left it, which was killed or lost the server
      ::unlinkat(file.parent.get(), temporary_name(file.name, k_new).c_str(), 0);
    const auto fd = sys::open_below(file.parent.get(), file.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd && errno == ELOOP) // somebody has put a link there
      return FileOutcome::changed_since;
    if (!fd || ::fstat(fd.get(), &work.status) != 0)
      return fail(errno_error(errno, path_of(change)));
    if (!S_ISREG(work.status.st_mode) || is_privileged(fd, work.status))
      return FileOutcome::changed_since;
    TRY_ASSIGN(const auto content, content_of(fd, work.status, path_of(change)));
    const auto checksum = sys::sha256(content);
    if (checksum == change.after)
      return FileOutcome::already;
    const auto result = checksum == change.before && is_planned(change, work.status)
                            ? apply_edits(content, change.edits)
                            : std::nullopt;
    if (!result || sys::sha256(*result) != change.after)
      return FileOutcome::changed_since;
    if (m_phase == Phase::perform) {
      if (const int error = write_beside(file, fd, work.status, *result); error != 0)
        return fail(
            errno_error(error, path_of(change), error == EPERM ? "run it as the owner of the file, or as root" : ""));
      work.written = true;
    }
    return FileOutcome::changed;
  }

  /// Returns 0, or an errno; after an error there is no file beside the old one.
  static int write_beside(const OpenParent& file, const sys::Fd& old, const struct stat& status,
                          const std::string& content) {
    const auto name = temporary_name(file.name, k_new);
    const auto fd = sys::create_file(file.parent.get(), name, 0600);
    if (!fd)
      return errno;
    const std::array times{timespec{0, UTIME_OMIT}, later_than(status.st_mtim)};
    struct stat made{};
    int error = sys::write_all(fd.get(), content) && ::fstat(fd.get(), &made) == 0 ? 0 : errno;
    if (const auto attributes = tree::read_attributes(old.get()); error == 0)
      error = attributes ? tree::set_attributes(fd.get(), made, status, *attributes, true) : attributes.error();
    if (error == 0 && ::fstat(fd.get(), &made) != 0)
      error = errno;
    else if (error == 0 && (made.st_uid != status.st_uid || made.st_gid != status.st_gid))
      error = EPERM;
    if (error == 0 && ::futimens(fd.get(), times.data()) != 0)
      error = errno;
    if (error != 0)
      ::unlinkat(file.parent.get(), name.c_str(), 0);
    return error;
  }

  /// Renames the new content over the file, unless somebody has changed the file meanwhile, or it is not to take that
  /// name; then it is deleted.
  void take_name(const FileChange& change, FileWork& work, bool takes) const {
    const auto file = open_parent(change);
    if (!file.parent) {
      work.error = errno_error(errno, path_of(change));
      return;
    }
    const auto beside = temporary_name(file.name, k_new);
    struct stat now{};
    const bool same =
        ::fstatat(file.parent.get(), file.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 && same_file(now, work.status);
    work.outcome = same && takes ? FileOutcome::changed : FileOutcome::changed_since;
    if (same && takes) {
      if (::renameat(file.parent.get(), beside.c_str(), file.parent.get(), file.name.c_str()) == 0)
        return;
      work.error = errno_error(errno, path_of(change));
    }
    ::unlinkat(file.parent.get(), beside.c_str(), 0);
  }

  [[nodiscard]] ChangeCounts counts() const {
    ChangeCounts counts;
    for (std::size_t i = 0; i < m_works.size(); ++i) {
      const auto& work = m_works[i];
      if (counts.failed + counts.since == 0 && (work.error || work.outcome == FileOutcome::changed_since))
        counts.first = work.error.value_or(
            Error{ErrorCode::conflict, path_of(m_action.changes[i]) + ": is not as planned any more", {}, {}});
      if (work.error)
        ++counts.failed;
      else if (work.outcome == FileOutcome::changed_since)
        ++counts.since;
      else if (work.outcome == FileOutcome::changed)
        ++counts.changed;
    }
    return counts;
  }

  static constexpr const char* k_new = "new";
  const ChangeFiles& m_action;
  const int m_tree;
  const Phase m_phase;
  const sys::ProgressCounters& m_counters;
  std::vector<FileWork> m_works; ///< one per change, in the same order
  std::atomic<bool> m_is_pending{false};
};

} // namespace

Result<Acted> act(const ChangeFiles& action, sys::System& system, Phase phase, const Note& note) {
  const tree::Place place{
      .path = action.path, .root = system.files().root(), .device = action.device, .inode = action.inode};
  const tree::Options options{.deadline = action.deadline};
  const auto counts = tree::watched(
      action.path, options,
      [&](const tree::Progress& progress) {
        // Each file is counted four times: when it is written, and in the rounds of renaming.
        if (note && progress.files > 1)
          note(fmt::format("{} of {} in {}", progress.files / 4, count_of(action.changes.size(), "file"), action.path),
               false);
      },
      [&](const sys::ProgressCounters& counters) -> Result<ChangeCounts> {
        TRY_ASSIGN(const auto found, tree::find_tree(place));
        return FileChanger(action, found.fd.get(), phase, counters).run();
      });
  if (!counts && counts.error().code == ErrorCode::interrupted)
    return fail(ErrorCode::interrupted, action.path + ": stopped on the way",
                "run the command again, it goes on from here, or `sharefs undo`");
  TRY(counts);
  if (phase == Phase::check)
    return counts->changed + counts->failed + counts->since > 0 ? Outcome::done : Outcome::unchanged;
  const auto& hint = counts->first.hint;
  if (const auto left = counts->failed + counts->since; left > 0)
    return fail(ErrorCode::failed,
                fmt::format("{} not changed; the first: {}", count_of(left, "file"), counts->first.message),
                (counts->failed > 0 ? "the others are changed: take them back first (`sharefs undo`); "
                                    : "the others are changed; ") +
                    (hint.empty() ? "run the command again" : hint));
  return counts->changed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

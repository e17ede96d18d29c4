#pragma once
// Reads and writes files under a root directory (`--root`). The mount table decides whether a path may hang; such work
// is done in a child with a deadline, and its error is `timeout`. Writing does not follow links that somebody else
// made.
#include "base/result.hpp"
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_watch.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

class WaitingChildren;

/// All paths are absolute, as seen from inside the root. Symbolic links are resolved inside the root, so that a link in
/// an installation tree never leads out of it.
class Files {
 public:
  /// `deadline`: for each entry() of a path that may hang.
  explicit Files(const std::string& root = "/", std::chrono::milliseconds deadline = std::chrono::seconds(3));
  [[nodiscard]] const std::string& root() const { return m_root; }
  [[nodiscard]] bool is_live() const { return m_root == "/"; }
  /// Returns `path` as seen from outside the root.
  [[nodiscard]] std::string real_path(const std::string& path) const { return is_live() ? path : m_root + path; }

  /// Returns the mount table of this process; it is read again only after a change.
  [[nodiscard]] Result<MountTable> mounts() const { return m_mounts->current(); }
  /// True if the root itself lies on a mount that may hang.
  [[nodiscard]] bool root_may_hang() const;
  /// Returns MountTable::hanging() as seen from inside the root, without the root itself.
  [[nodiscard]] MountTargets hanging_in(const MountTable& mounts) const;
  /// Opens the root with O_PATH. This may hang if root_may_hang().
  [[nodiscard]] Fd open_root() const;

  /// Returns the children of read_entries(), which end with the last copy of this object.
  [[nodiscard]] WaitingChildren& waiting_children() const { return *m_children; }

  /// Reads one entry, see read_entries().
  [[nodiscard]] Entry entry(const EntryQuery& query) const;
  /// Returns the whole content. Errors: `not_found`, `permission`, `timeout`; `failed` for more than `limit` bytes.
  [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// Returns the whole content, or nullopt if there is no such file.
  [[nodiscard]] Result<std::optional<std::string>> read_if_exists(const std::string& path,
                                                                  std::size_t limit = 16U << 20U) const;
  /// Like read(), but with the error `permission` if users other than root and this process's user could change or
  /// replace the file: because of its owner, its mode, a link in the path, or a directory above it.
  [[nodiscard]] Result<std::string> read_trusted(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// Returns the names in a directory, sorted, without . and ..; error `not_found` if there is no directory.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const;

  /// Replaces or creates a file atomically: a temporary file in the same directory, fsync, owner, mode, ACL and xattrs
  /// of the replaced file (or `mode` for a new one), rename, fsync of the directory. A trusted symlink is followed and
  /// its target is replaced; any other symlink is the error `permission`. A missing parent directory is `not_found`.
  /// Error `conflict`: the content is not `before` at the time of the rename, or, with nullopt, the file exists.
  Result<void> write_if(const std::string& path, const std::optional<std::string>& before, std::string_view content,
                        mode_t mode = 0644) const;
  Result<void> remove(const std::string& path) const; ///< unlinks the file and fsyncs the directory
  /// Makes the note `made` in a directory (make_note()), then removes the notes `gone`; an error of a removal is
  /// ignored. Nothing is synced: notes belong to processes of this host and need not survive a crash.
  Result<void> replace_notes(const std::string& directory, const std::string& made,
                             const std::vector<std::string>& gone) const;
  Result<void> make_directories(const std::string& path, mode_t mode = 0755) const;

 private:
  /// Walks to `path` by `rule`, through trusted links only, and calls `work` there; in a child if the path may hang.
  Result<void> at(const std::string& path, WalkRule rule, const std::function<Result<void>(const Walked&)>& work) const;

  std::string m_root;
  std::chrono::milliseconds m_deadline;
  std::shared_ptr<MountWatch> m_mounts;
  std::shared_ptr<WaitingChildren> m_children;
};

/// Syncs an open directory (an O_PATH descriptor is sufficient), so that a rename or unlink in it survives a power cut.
Result<void> sync_directory(int directory, const std::string& path);

} // namespace sharefs::sys

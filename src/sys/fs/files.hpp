#pragma once
// Files under a root directory (`--root`). Whether a path may hang is decided here, from the mount table: then the work
// is done in a child with a deadline, and the error is `timeout`. Whether it can be trusted is decided here, too:
// writing goes through no link that somebody else made.
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

/// All paths are absolute as seen from inside the root; symbolic links are resolved inside the root, so a link in an
/// installation tree never leads out of it.
class Files {
 public:
  /// `deadline`: for a look at a path that may hang.
  explicit Files(const std::string& root = "/", std::chrono::milliseconds deadline = std::chrono::seconds(3));
  [[nodiscard]] const std::string& root() const { return m_root; }
  [[nodiscard]] bool is_live() const { return m_root == "/"; }
  /// `path` as seen from outside the root.
  [[nodiscard]] std::string real_path(const std::string& path) const { return is_live() ? path : m_root + path; }

  /// The mount table of this process, read anew after a change only.
  [[nodiscard]] Result<MountTable> mounts() const { return m_mounts->current(); }
  /// The root itself lies on a mount on which a look may hang.
  [[nodiscard]] bool root_may_hang() const;
  /// MountTable::hanging(), as seen from inside the root; the root itself is not among them.
  [[nodiscard]] MountTargets hanging_in(const MountTable& mounts) const;
  /// O_PATH; may hang if root_may_hang().
  [[nodiscard]] Fd open_root() const;

  /// Those of read_entries(), which end with the last copy of this.
  [[nodiscard]] WaitingChildren& waiting_children() const { return *m_children; }

  /// One look, see read_entries().
  [[nodiscard]] Entry entry(const EntryQuery& query) const;
  /// Whole content. `not_found`, `permission`, `timeout`; more than `limit` bytes is `failed`.
  [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// Whole content, or nullopt if there is no such file.
  [[nodiscard]] Result<std::optional<std::string>> read_if_exists(const std::string& path,
                                                                  std::size_t limit = 16U << 20U) const;
  /// As read, but `permission` for a file that others than root and this process's user could change or replace: by
  /// its owner, its mode, a link on the way, or a directory above it.
  [[nodiscard]] Result<std::string> read_trusted(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// Names in a directory, sorted, without . and ..; `not_found` if there is no directory.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const;

  /// Replace or create atomically: temporary file in the same directory, fsync, owner, mode, ACL and xattrs of the file
  /// that is replaced (or `mode` for a new one), rename, fsync of the directory. A trusted symlink is followed and its
  /// target is replaced; any other is `permission`. Missing parent directories are an error (`not_found`). `conflict`
  /// if the content is not `before` at the time of the rename; nullopt: if there is anything.
  Result<void> write_if(const std::string& path, const std::optional<std::string>& before, std::string_view content,
                        mode_t mode = 0644) const;
  Result<void> remove(const std::string& path) const; ///< unlink and fsync of the directory
  /// Notes in a directory (make_note()): `made` comes, if it is not there, then those of
  /// `gone` go that may be removed. Not synced: they are of processes of this host, which they need not survive.
  Result<void> replace_notes(const std::string& directory, const std::string& made,
                             const std::vector<std::string>& gone) const;
  Result<void> make_directories(const std::string& path, mode_t mode = 0755) const;

 private:
  /// Walks by `rule`, through trusted links only, to `path`, and works there: in process, or in a child where that may
  /// hang.
  Result<void> at(const std::string& path, WalkRule rule, const std::function<Result<void>(const Walked&)>& work) const;

  std::string m_root;
  std::chrono::milliseconds m_deadline;
  std::shared_ptr<MountWatch> m_mounts;
  std::shared_ptr<WaitingChildren> m_children;
};

/// fsync of an open directory (O_PATH will do), so that a rename or unlink in it survives a power cut.
Result<void> sync_directory(int directory, const std::string& path);

} // namespace sharefs::sys

#pragma once
// The mount table of /proc/self/mountinfo, as plain values. Reading the table never touches a mounted file system.
#include "base/result.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sharefs::sys {

struct MountEntry {
  int id = 0;
  int parent = 0;
  unsigned major = 0, minor = 0; ///< st_dev of the superblock; unmounting and mounting again gives a new one
  std::string root;              ///< the directory of its file system that is mounted
  std::string target;            ///< mount point, decoded; the kernel ends the mount with it (mount_namespaces(7))
  std::string options;           ///< per mount point: rw,relatime
  std::string fs_type;           ///< nfs, nfs4, ext4, autofs, fuse.sshfs ...
  std::string source;            ///< server:/path, /dev/sda1, ...
  std::string super_options;     ///< per superblock: rw,vers=4.2,...

  friend bool operator==(const MountEntry&, const MountEntry&) = default;
};

/// Returns the value of the option NAME=VALUE in a comma-separated list, the last one if there are several, or "" for
/// the option NAME. nullopt: there is no such option.
std::optional<std::string> option_value(std::string_view options, std::string_view name);
/// True for the types nfs and nfs4.
bool is_nfs(const MountEntry& mount);
/// Returns restrictions_in() of a mount; `ro` counts if the mount point or the superblock is read-only.
std::string restrictions_of(const MountEntry& mount);
/// True if other hosts share its files: NFS, Lustre, GPFS, CephFS, BeeGFS, SMB, 9p, AFS, OCFS2, GFS2, FUSE file systems
/// with remote files (recognised by subtype, by source, or by the helper in fstab: `s3fs#bucket`), and autofs, which
/// almost always mounts a network file system. `source`: empty if only the type is known.
bool is_shared(std::string_view fs_type, std::string_view source);
bool is_shared(const MountEntry& mount);
/// True if a system call on its files may wait for something other than this host's disks and kernel: on shared file
/// systems and on all of FUSE.
bool may_hang(std::string_view fs_type);

/// The processes that flock(2) excludes on a mount.
enum class LockScope {
  unknown,   ///< the mount table does not show it, or flock fails
  this_host, ///< processes of this host only
  all_hosts, ///< processes of every host that has mounted the file system
  same_name, ///< all hosts, but another host has the same NFS 4 client name, so locks do not exclude it
};
/// Decides by the options in force, which the kernel shows for the superblock.
LockScope lock_scope(const MountEntry& mount);

/// A value whose copies share their content, so that copies are cheap.
class MountTable {
 public:
  MountTable() : MountTable(std::vector<MountEntry>()) {}
  explicit MountTable(std::vector<MountEntry> entries);
  /// Parses the text of mountinfo (proc(5)) and decodes all octal escapes. An Error has the line number. libmount is
  /// not used: loading it with its libraries takes as long as all other work of `sharefs run`.
  static Result<MountTable> parse(std::string_view mountinfo);

  [[nodiscard]] const std::vector<MountEntry>& entries() const { return m_index->entries; }
  /// Returns the mount that contains `path` (absolute, normalized), by a purely lexical walk down the mount tree.
  /// Hidden mounts are skipped. The cost does not grow with the number of mounts. nullptr for an empty table, and in a
  /// chroot whose root is not a mount point. (libmount's mnt_table_find_mountpoint stats the path and hangs on a dead
  /// mount.)
  [[nodiscard]] const MountEntry* owner_of(std::string_view path) const;
  /// Returns the visible (topmost) mount whose target is exactly `target`; nullptr if there is none.
  [[nodiscard]] const MountEntry* at(std::string_view target) const;
  /// Returns the mounts at or below `target` in an order in which they can be unmounted: the deepest first, and a mount
  /// before the mounts that it hides.
  [[nodiscard]] std::vector<const MountEntry*> below(std::string_view target) const;
  /// True if the directory `path` is mounted on `target` (mount --bind). Always false for a path with a symbolic link.
  [[nodiscard]] bool is_bind(std::string_view target, std::string_view path) const;
  /// Returns the targets of the mounts where may_hang() is true; hidden mounts are included to be safe.
  [[nodiscard]] const std::set<std::string, std::less<>>& hanging() const { return m_index->hanging; }

 private:
  struct Index {
    std::vector<MountEntry> entries;
    const MountEntry* root = nullptr; ///< the mount in which the lookup of an absolute path starts
    /// The mounts on each mount, by target. If several have the same target, it is the last one, which is on top.
    std::unordered_map<int, std::map<std::string, const MountEntry*, std::less<>>> children;
    std::set<std::string, std::less<>> hanging;
  };
  std::shared_ptr<const Index> m_index;
};

} // namespace sharefs::sys

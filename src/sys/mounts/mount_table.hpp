#pragma once
// The mount table as it stands in /proc/self/mountinfo. Pure values; reading it never touches a mounted file system.
#include "base/result.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sharefs::sys {

struct MountEntry {
  int id = 0;
  int parent = 0;
  unsigned major = 0, minor = 0; ///< st_dev of the superblock: a new one after a real remount
  std::string root;              ///< of the mount within its file system
  std::string target;        ///< mount point, decoded; the mount goes with a mount point that is removed (Linux 3.18)
  std::string options;       ///< per mount point: rw,relatime
  std::string fs_type;       ///< nfs, nfs4, ext4, autofs, fuse.sshfs ...
  std::string source;        ///< server:/path, /dev/sda1, ...
  std::string super_options; ///< per superblock: rw,vers=4.2,...

  friend bool operator==(const MountEntry&, const MountEntry&) = default;
};

/// nfs or nfs4.
bool is_nfs(const MountEntry& mount);
/// restrictions_in() of a mount, whether its mount point or its superblock is read-only.
std::string restrictions_of(const MountEntry& mount);
/// Do other hosts share what lies on it? NFS, Lustre, GPFS, CephFS, BeeGFS, SMB, 9p, AFS, OCFS2, GFS2, FUSE file
/// systems whose files lie elsewhere (known by subtype, by source, or by the helper of fstab: `s3fs#bucket`), and
/// autofs (what it would mount is a network file system in all but rare cases).
bool is_shared(std::string_view fs_type, std::string_view source);
bool is_shared(const MountEntry& mount);
/// is_shared() where nothing but the type is known.
bool is_shared_fs_type(std::string_view fs_type);
/// True where looking at a file may wait for more than this host's disks and kernel: shared file systems and all of
/// FUSE.
bool may_hang(std::string_view fs_type);

/// Whom flock(2) excludes on a mount.
enum class LockScope {
  unknown,   ///< it depends on what the mount table does not say, or flock fails
  this_host, ///< processes of this host only
  all_hosts, ///< processes of every host that has it mounted
  same_name, ///< they would, but another host has this one's NFS 4 client name: see shows_second_host()
};
const char* to_string(LockScope scope);
/// By the options that are in force, which the kernel shows for the superblock.
LockScope lock_scope(const MountEntry& mount);

/// A value; copies share what they hold, so that one look at the machine can pass one table along.
class MountTable {
 public:
  MountTable() : MountTable(std::vector<MountEntry>()) {}
  explicit MountTable(std::vector<MountEntry> entries);
  /// Text of mountinfo (proc(5)), all octal escapes decoded. Error with the line number. Not by libmount: loading it
  /// and the libraries that it needs takes as long as everything else that `sharefs run` does.
  static Result<MountTable> parse(std::string_view mountinfo);

  [[nodiscard]] const std::vector<MountEntry>& entries() const { return m_index->entries; }
  /// The mount that a lookup of `path` (absolute, normalized) ends in, by a purely lexical walk down the mount tree;
  /// knows hidden mounts; its cost does not grow with the number of mounts. nullptr for an empty table, and in a chroot
  /// whose root is no mount point. (libmount's mnt_table_find_mountpoint stats the path and hangs on a dead mount.)
  [[nodiscard]] const MountEntry* owner_of(std::string_view path) const;
  /// The visible (topmost) mount whose target is exactly `target`; nullptr if none.
  [[nodiscard]] const MountEntry* at(std::string_view target) const;
  /// Mounts at or below `target` in an order in which they can be unmounted: deepest first, a mount before those that
  /// it hides.
  [[nodiscard]] std::vector<const MountEntry*> below(std::string_view target) const;
  /// Is what is mounted on `target` the local directory `path` (mount --bind)? A path with a symbolic link is never.
  [[nodiscard]] bool is_bind(std::string_view target, std::string_view path) const;
  /// Targets of the mounts on which a look may hang; hidden ones too, to be safe.
  [[nodiscard]] const std::set<std::string, std::less<>>& hanging() const { return m_index->hanging; }

 private:
  struct Index {
    std::vector<MountEntry> entries;
    const MountEntry* root = nullptr; ///< the mount that the lookup of an absolute path starts in
    /// The mounts on each mount, by target; of several at one target the last, which is on top.
    std::unordered_map<int, std::map<std::string, const MountEntry*, std::less<>>> children;
    std::set<std::string, std::less<>> hanging;
  };
  std::shared_ptr<const Index> m_index;
};

} // namespace sharefs::sys

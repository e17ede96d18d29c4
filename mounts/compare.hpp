#pragma once
// What was asked for, compared with what mountinfo shows: it spells options otherwise, and leaves many out.
#include "mounts/mount_point.hpp"
#include "mounts/options.hpp"
#include "sys/mounts/mount_table.hpp"

#include <string>
#include <vector>

namespace sharefs::mounts {

struct Difference {
  std::string key;
  std::string asked;  ///< "vers=4.2"
  std::string actual; ///< "vers=3"; in parentheses when mountinfo shows only by silence that it is the default
  bool fault = true;  ///< false: fixed by an earlier mount of the same server (nconnect), reported and left alone
  friend bool operator==(const Difference&, const Difference&) = default;
};
template <FieldsOf<Difference> D> auto fields(D& d) {
  return named("asked", d.asked, "actual", d.actual, "fault", d.fault);
}

/// The settings of a mount as mountinfo shows them: those of the superblock, then those of the mount point.
/// A mount is read-only if either says so.
Settings shown_settings(const sys::MountEntry& mount);
/// Only options that were asked for are compared, and only where mountinfo can tell.
std::vector<Difference> compare_options(const Settings& asked, const sys::MountEntry& mount);
bool has_faults(const std::vector<Difference>& differences);
/// True if all faults are of rights (ro, nosuid, nodev, noexec), which can be changed on a mount in use.
bool can_remount(const std::vector<Difference>& differences);
/// "vers=3 instead of vers=4.2, ro instead of rw"
std::string describe(const std::vector<Difference>& differences);

/// Is this mount the export that `point` asks for? The server may be spelled otherwise (name, address): then the
/// address that the kernel uses (`addr=`) decides. `address` is what the server's name resolves to, "" if not known;
/// in doubt two servers are taken for the same.
bool same_source(const MountPoint& point, const sys::MountEntry& mount, const std::string& address);
/// True if `child` is a file system below the export `parent` that the kernel mounted by itself (crossmnt, NFS 4): it
/// goes with its parent.
bool is_submount(const sys::MountEntry& parent, const sys::MountEntry& child);

struct MountsAt {
  /// The NFS mounts at exactly the target, the visible one first, down to the first that is not NFS.
  std::vector<const sys::MountEntry*> layers;
  std::vector<const sys::MountEntry*> below;     ///< the target, deepest first, but for `submounts`
  std::vector<const sys::MountEntry*> submounts; ///< which the kernel made by itself (is_submount)
};
MountsAt mounts_at(const sys::MountTable& table, const std::string& target);

/// Options that mount the same again: what mountinfo shows without what the kernel adds by itself.
std::string remount_options(const sys::MountEntry& mount);

} // namespace sharefs::mounts

#pragma once
// Compares the options that were asked for with mountinfo, which writes options in another way and leaves many out.
#include "mounts/mount_point.hpp"
#include "mounts/options.hpp"
#include "sys/mounts/mount_table.hpp"

#include <string>
#include <vector>

namespace sharefs::mounts {

struct Difference {
  std::string key;
  std::string asked;  ///< "vers=4.2"
  std::string actual; ///< "vers=3"; in parentheses if it is the default, which mountinfo does not show
  bool fault = true;  ///< false: an earlier mount of the same server decides (nconnect), so it is only reported
  friend bool operator==(const Difference&, const Difference&) = default;
};
template <FieldsOf<Difference> D> auto fields(D& d) {
  return named("asked", d.asked, "actual", d.actual, "fault", d.fault);
}

/// Returns the settings of a mount that mountinfo shows: those of the superblock, then those of the mount point. A
/// mount is read-only if one of the two is.
Settings shown_settings(const sys::MountEntry& mount);
/// Compares only options that were asked for, and only if mountinfo shows them or their default is known.
std::vector<Difference> compare_options(const Settings& asked, const sys::MountEntry& mount);
bool has_faults(const std::vector<Difference>& differences);
/// True if all faults are restrictions (ro, nosuid, nodev, noexec), which can be changed on a mount in use.
bool can_remount(const std::vector<Difference>& differences);
/// Returns "vers=3 instead of vers=4.2, ro instead of rw".
std::string describe(const std::vector<Difference>& differences);

/// True if this mount is the export that `point` asks for. If the servers are written differently (name, address), the
/// address that the kernel uses (`addr=`) decides. `address` is what the server's name resolves to, "" if not known;
/// if one of the two addresses is not known, the servers count as the same.
bool same_source(const MountPoint& point, const sys::MountEntry& mount, const std::string& address);
/// True if `child` is a file system below the export `parent` that the kernel has mounted by itself (crossmnt, NFS 4).
/// Unmounting the parent removes it, too.
bool is_submount(const sys::MountEntry& parent, const sys::MountEntry& child);

struct MountsAt {
  /// The NFS mounts stacked at exactly the target, the visible one first, down to the first mount that is not NFS.
  std::vector<const sys::MountEntry*> layers;
  /// The mounts below the target, deepest first, without those that the kernel made by itself (is_submount).
  std::vector<const sys::MountEntry*> below;
};
MountsAt find_mounts_at(const sys::MountTable& table, const std::string& target);

/// Returns the options that mount the same again: those of mountinfo, without those that the kernel adds by itself.
std::string remount_options(const sys::MountEntry& mount);

} // namespace sharefs::mounts

// Decides whether other hosts share the files of a mount, and whether its locks exclude them.
#include "base/text.hpp"
#include "sys/mounts/mount_table.hpp"

#include <algorithm>

namespace sharefs::sys {
namespace {

// The names that /proc/filesystems and the mount helpers of each file system use.
constexpr std::string_view k_shared[] = {
    "nfs", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "beegfs_nodev", "fhgfs", "cifs",     "smb3",   "smbfs",
    "9p",  "afs",  "ocfs2",  "gfs2", "acfs", "pvfs2",  "panfs",        "coda",  "virtiofs", "autofs", "wekafs",
};

/// FUSE file systems with files on other machines. A name is the text after `fuse.` in mountinfo, or the source if the
/// type is `fuse` alone, or the name of the helper in fstab.
constexpr std::string_view k_shared_fuse[] = {
    // type `fuse` without a subtype, this source: MountOption::FSName in mountpoint-s3; its mount helper is mount-s3
    "mountpoint-s3", "mount-s3",
    // -ofsname=blobfuse2, a subtype only from libfuse: component/libfuse/libfuse_handler.go of azure-storage-fuse
    "blobfuse", "blobfuse2",
    // MountConfig in cmd/mount.go of gcsfuse and in api/api.go of geesefs: the source is the bucket; goofys has the
    // same source, but no subtype (see may_be_bucket)
    "gcsfuse", "geesefs", "tigrisfs", "goofys",
    // pkg/fuse/fuse.go of juicefs: source JuiceFS:NAME
    "juicefs",
    // -ofsname=dfuse -osubtype=daos: src/client/dfuse of DAOS
    "daos", "dfuse",
    // source https://HOST/..., no subtype
    "davfs", "davfs2",
    // each with its own name as the subtype
    "rclone", "s3fs", "ossfs", "ossfs2", "obsfs", "cosfs", "alluxio", "alluxio-fuse", "sshfs", "smbnetfs", "curlftpfs",
    "glusterfs", "ceph-fuse", "mfs", "moosefs", "saunafs", "lizardfs", "seaweedfs", "curvefs", "cubefs", "chubaofs",
    "quobyte", "fuse_dfs", "cvmfs2", "xtreemfs", "orangefs", "hf3fs", "objectivefs", "oneclient"};

template <std::size_t N> bool is_in(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::count(names, name) != 0;
}

/// Checks a source by S3's rules for names of buckets. A plain word as the source of a `fuse` mount without a subtype
/// is a bucket in practice: libfuse's own programs always have a subtype, bindfs and disks have a path as source, and
/// Python's fusepy the name of a class.
bool may_be_bucket(std::string_view source) {
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return source.size() >= 3 && source.size() <= 63 && is_end(source.front()) && is_end(source.back()) &&
         std::ranges::all_of(source, [&](char c) { return is_end(c) || c == '-' || c == '.'; }) && source != "none" &&
         source != "fuse";
}

/// True for fuse and fuseblk, with or without a subtype; false for fusectl.
bool is_fuse(std::string_view fs_type) {
  const auto type = fs_type.substr(0, fs_type.find('.'));
  return type == "fuse" || type == "fuseblk";
}

/// Checks the source of a FUSE mount without a subtype.
bool is_remote_source(std::string_view source) {
  if (source.starts_with('/'))
    return false;
  if (const auto hash = source.find('#'); hash != std::string_view::npos)
    return is_in(k_shared_fuse, source.substr(0, hash));
  return is_in(k_shared_fuse, source) || source.find(':') != std::string_view::npos || may_be_bucket(source);
}

bool has_one_of(const MountEntry& mount, std::initializer_list<std::string_view> options) {
  const auto in_force = split(mount.super_options, ',');
  return std::ranges::any_of(options,
                             [&](std::string_view option) { return std::ranges::count(in_force, option) != 0; });
}

} // namespace

bool is_nfs(const MountEntry& mount) {
  return mount.fs_type == "nfs" || mount.fs_type == "nfs4";
}

bool is_shared(std::string_view fs_type, std::string_view source) {
  if (!is_fuse(fs_type))
    return is_in(k_shared, fs_type) || is_in(k_shared_fuse, fs_type); // fstab may have a helper's name: `sshfs`
  if (const auto dot = fs_type.find('.'); dot != std::string_view::npos) {
    const auto subtype = fs_type.substr(dot + 1);
    return is_in(k_shared_fuse, subtype) || subtype == "ceph" || source.find("://") != std::string_view::npos;
  }
  return is_remote_source(source);
}

bool is_shared(const MountEntry& mount) {
  return is_shared(mount.fs_type, mount.source);
}

bool may_hang(std::string_view fs_type) {
  return is_shared(fs_type, {}) || is_fuse(fs_type);
}

LockScope lock_scope(const MountEntry& mount) {
  using enum LockScope;
  // Source: nfs(5) and measurements (docs/cache-race.md). A mount of version 4 accepts these options but ignores them;
  // the kernel does not show them then.
  if (is_nfs(mount)) {
    if (has_one_of(mount, {"nolock", "local_lock=all", "local_lock=flock"}))
      return this_host;
    return mount.fs_type == "nfs4" || mount.super_options.find("vers=") != std::string::npos ? all_hosts : unknown;
  }
  if (mount.fs_type == "lustre") // Lustre's manual, mount.lustre(8): without either option flock fails
    return has_one_of(mount, {"localflock"}) ? this_host : has_one_of(mount, {"flock"}) ? all_hosts : unknown;
  if (mount.fs_type == "ocfs2") // Documentation/filesystems/ocfs2.rst
    return has_one_of(mount, {"localflocks"}) ? this_host : all_hosts;
  if (mount.fs_type == "cifs" || mount.fs_type == "smb3") // mount.cifs(8); without it kernel and server decide
    return has_one_of(mount, {"nobrl"}) ? this_host : unknown;
  if (mount.fs_type == "ceph") // fs/ceph/locks.c: flock always goes to the MDS
    return all_hosts;
  if (mount.fs_type == "fuse.juicefs") // pkg/fuse/fuse.go: EnableLocks
    return all_hosts;
  // GPFS, BeeGFS (tuneUseGlobalFileLocks), GFS2 (lock_nolock), 9p, virtiofs, FUSE, autofs: the mount table does not
  // show the scope.
  return may_hang(mount.fs_type) ? unknown : this_host;
}

} // namespace sharefs::sys

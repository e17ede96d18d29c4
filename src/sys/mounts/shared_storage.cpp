// Facts of a mount about other hosts: whether they share its files, and whether its locks exclude them.
#include "base/text.hpp"
#include "sys/mounts/mount_table.hpp"

#include <algorithm>
#include <array>

namespace sharefs::sys {
namespace {

// Names as /proc/filesystems and the mount helpers of each file system have them.
constexpr std::string_view k_shared[] = {
    "nfs", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "beegfs_nodev", "fhgfs", "cifs",     "smb3",   "smbfs",
    "9p",  "afs",  "ocfs2",  "gfs2", "acfs", "pvfs2",  "panfs",        "coda",  "virtiofs", "autofs", "wekafs",
};

/// FUSE file systems with files on other machines. A name is what mountinfo shows behind `fuse.`, or as the source
/// where the type is `fuse` alone, or the helper's in fstab.
constexpr std::string_view k_shared_fuse[] = {
    // `fuse` and this source, no subtype: MountOption::FSName in mountpoint-s3; its mount helper is mount-s3.
    "mountpoint-s3", "mount-s3",
    // -ofsname=blobfuse2, the subtype by libfuse if at all: component/libfuse/libfuse_handler.go of azure-storage-fuse
    "blobfuse", "blobfuse2",
    // MountConfig of cmd/mount.go in gcsfuse and of api/api.go in geesefs: source is the bucket, as goofys has it
    // without any subtype (see may_be_bucket)
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

/// The rules of S3 for names of buckets. A source of `fuse` without a subtype that is a plain word is one in practice:
/// libfuse's own programs always have a subtype, bindfs and disks a path, and Python's fusepy the name of a class.
bool may_be_bucket(std::string_view source) {
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return source.size() >= 3 && source.size() <= 63 && is_end(source.front()) && is_end(source.back()) &&
         std::ranges::all_of(source, [&](char c) { return is_end(c) || c == '-' || c == '.'; }) && source != "none" &&
         source != "fuse";
}

/// fuse, fuseblk, and either with a subtype; not fusectl.
bool is_fuse(std::string_view fs_type) {
  const auto type = fs_type.substr(0, fs_type.find('.'));
  return type == "fuse" || type == "fuseblk";
}

/// Of a FUSE mount without a subtype.
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
    return is_in(k_shared, fs_type) || is_in(k_shared_fuse, fs_type); // the latter in fstab: `mount -t sshfs`
  if (const auto dot = fs_type.find('.'); dot != std::string_view::npos) {
    const auto subtype = fs_type.substr(dot + 1);
    return is_in(k_shared_fuse, subtype) || subtype == "ceph" || source.find("://") != std::string_view::npos;
  }
  return is_remote_source(source);
}

bool is_shared(const MountEntry& mount) {
  return is_shared(mount.fs_type, mount.source);
}

bool is_shared_fs_type(std::string_view fs_type) {
  return is_shared(fs_type, {});
}

bool may_hang(std::string_view fs_type) {
  return is_shared_fs_type(fs_type) || is_fuse(fs_type);
}

const char* to_string(LockScope scope) {
  static constexpr std::array k_names{"unknown", "this host", "all hosts", "none with this host's name", "unknown"};
  return name_in(k_names, scope);
}

LockScope lock_scope(const MountEntry& mount) {
  using enum LockScope;
  // nfs(5), and measured (docs/cache-race.md). A mount of version 4 takes these options and ignores them, and the
  // kernel does not show them then.
  if (is_nfs(mount)) {
    if (has_one_of(mount, {"nolock", "local_lock=all", "local_lock=flock"}))
      return this_host;
    return mount.fs_type == "nfs4" || mount.super_options.find("vers=") != std::string::npos ? all_hosts : unknown;
  }
  if (mount.fs_type == "lustre") // Lustre's manual, mount.lustre(8): without either flock fails
    return has_one_of(mount, {"localflock"}) ? this_host : has_one_of(mount, {"flock"}) ? all_hosts : unknown;
  if (mount.fs_type == "ocfs2") // Documentation/filesystems/ocfs2.rst
    return has_one_of(mount, {"localflocks"}) ? this_host : all_hosts;
  if (mount.fs_type == "cifs" || mount.fs_type == "smb3") // mount.cifs(8); else it depends on the kernel and the server
    return has_one_of(mount, {"nobrl"}) ? this_host : unknown;
  if (mount.fs_type == "ceph") // fs/ceph/locks.c: flock always goes to the MDS
    return all_hosts;
  if (mount.fs_type == "fuse.juicefs") // pkg/fuse/fuse.go: EnableLocks
    return all_hosts;
  // GPFS, BeeGFS (tuneUseGlobalFileLocks), GFS2 (lock_nolock), 9p, virtiofs, FUSE, autofs: nothing here says it.
  return may_hang(mount.fs_type) ? unknown : this_host;
}

} // namespace sharefs::sys

#include "exports/filesystem.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sharefs::exports {

namespace {

struct Row {
  std::string_view fs_types; ///< "fuse" also stands for its subtypes ("fuse.sshfs")
  Exportable exportable;
  std::string_view why;
};

constexpr std::array k_rows{
    Row{"tmpfs", Exportable::wants_fsid, "it lies in memory and has no device"},
    Row{"ramfs", Exportable::no, "a ramfs has no file handles"},
    Row{"overlay", Exportable::wants_fsid, "an overlay has no device of its own"},
    Row{"fuse", Exportable::needs_fsid, "a FUSE file system has no device of its own"},
    Row{"virtiofs ceph", Exportable::needs_fsid, "it has no device of its own"},
    Row{"nfs nfs4", Exportable::no, "it is itself mounted from an NFS server: mount it on the clients from there"},
    Row{"cifs smb3", Exportable::no, "it is itself mounted from an SMB server"},
    Row{"autofs", Exportable::no, "it is an automount point: export what is mounted there"},
    Row{"9p", Exportable::no, "9p has no file handles"},
    Row{"hostfs", Exportable::no, "hostfs has no file handles"},
    Row{"vboxsf", Exportable::no, "shared folders of a virtual machine have no file handles"},
    Row{"ecryptfs", Exportable::no, "eCryptfs has no file handles"},
    Row{"proc sysfs cgroup cgroup2 debugfs devpts", Exportable::no, "it is a view of the kernel"},
};

} // namespace

FileSystemFact file_system_fact(std::string_view fs_type, std::string_view options) {
  if (fs_type == "overlay" && std::ranges::count(split(options, ','), "nfs_export=on") == 0)
    return {Exportable::no, "an overlay can be exported only when it is mounted with `nfs_export=on,index=on`"};
  for (const auto& row : k_rows)
    if (contains(split_words(row.fs_types), fs_type.starts_with("fuse.") ? "fuse" : fs_type))
      return {row.exportable, row.why};
  return {};
}

FileSystemFact file_system_of(const sys::Entry& directory, const sys::MountTable& mounts) {
  const auto* const mount = mounts.at(directory.mount);
  return file_system_fact(directory.fs_type, mount == nullptr ? "" : mount->super_options);
}

} // namespace sharefs::exports

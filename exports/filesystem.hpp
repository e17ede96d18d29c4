#pragma once
// The file systems that the kernel's NFS server can export (fs/nfsd/export.c, check_export).
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"

#include <string_view>

namespace sharefs::exports {

enum class Exportable {
  yes,
  needs_fsid, ///< has no device by which the kernel can identify it, so the export needs `fsid=`
  wants_fsid, ///< current kernels export it without `fsid=`, but then clients lose it when it is mounted anew
  no,
};
struct FileSystemFact {
  Exportable exportable = Exportable::yes;
  std::string_view why; ///< one phrase: "it lies in memory and has no device"
};
/// `fs_type` is as in mountinfo; `options` are those of the superblock. An unknown type counts as exportable, because
/// exportfs and the verification find out later.
FileSystemFact file_system_fact(std::string_view fs_type, std::string_view options);
/// Returns the fact about the file system on which the directory lies, or would lie once it is made.
FileSystemFact file_system_of(const sys::Entry& directory, const sys::MountTable& mounts);

} // namespace sharefs::exports

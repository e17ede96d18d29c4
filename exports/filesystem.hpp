#pragma once
// Which file systems the kernel's NFS server can export (fs/nfsd/export.c, check_export).
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"

#include <string_view>

namespace sharefs::exports {

enum class Exportable {
  yes,
  needs_fsid, ///< has no device that tells it apart from others: `fsid=` has to
  wants_fsid, ///< can be exported without one by current kernels, but then clients lose it when it is mounted anew
  no,
};
struct FileSystemFact {
  Exportable exportable = Exportable::yes;
  std::string_view why; ///< one phrase: "it lies in memory and has no device"
};
/// `fs_type` as in mountinfo; `options` those of the superblock. An unknown type counts as exportable: exportfs and the
/// verification afterwards have the last word.
FileSystemFact file_system_fact(std::string_view fs_type, std::string_view options);
/// Of the file system that a directory lies on, or would lie on.
FileSystemFact file_system_of(const sys::Entry& directory, const sys::MountTable& mounts);

} // namespace sharefs::exports

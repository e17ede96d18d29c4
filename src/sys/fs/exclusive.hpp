#pragma once
// Names that are made where others may write: never over something, and never taken for something that others have put
// there. In a child: any path may lie on a dead mount.
#include "sys/fs/walk.hpp"

#include <string>
#include <tl/expected.hpp>

namespace sharefs::sys {

/// Are both one file, not a directory, by two names?
bool is_second_name(const Walked& one, const Walked& other);

/// rename(2) that never replaces. Where the file system does not know RENAME_NOREPLACE (NFS), a file gets a second
/// name, then loses its first (also if an interrupted call has left it with both); a directory is renamed after asking.
/// 0 or errno; EEXIST: something is there; ESTALE: what was to be renamed is another thing now.
int rename_exclusively(const Walked& from, const Walked& to);

/// By statfs(2), which asks the server.
bool is_on_nfs(int directory);

/// open(2) of a file that may have to be made. On NFS it is opened with O_DIRECT, which is taken back at once: so the
/// client asks for no delegation (fs/nfs/nfs4proc.c, nfs4_map_atomic_open_share). While it has one to write, times that
/// are set are only its own, and are lost with it (Linux 7.2), and the first look of each other host waits for this
/// one.
Fd open_to_make(int directory, const std::string& name, int flags, mode_t mode, bool on_nfs);
/// A file that is made, never one that is there (EEXIST). Empty with errno.
Fd create_file(int directory, const std::string& name, mode_t mode, int access = O_WRONLY);

/// A note: a symbolic link that leads nowhere and says all by its name. To make one is one request to a server, where a
/// file takes three. True: it is there. False with errno.
bool make_note(int directory, const std::string& name);

/// Name next to `name` for something that is not finished; not the same on two hosts that share the directory.
std::string temporary_name(const std::string& name, const std::string& purpose);

/// Makes `name` in the open directory `parent`, with exactly this mode, but for an inherited set-group-id bit. The
/// descriptor is that of the new directory, and of no other: mkdir(2) gives none, and what open(2) finds at the name a
/// moment later may be what somebody else has renamed there. Where others could do so, it is made in a directory beside
/// it that only we can enter, and moved from there. Or errno; EEXIST: something is there.
tl::expected<Fd, int> make_directory(int parent, const std::string& name, mode_t mode);
/// Takes away what a make_directory() that was killed has left beside `name`.
void clear_unfinished_directory(int parent, const std::string& name);

} // namespace sharefs::sys

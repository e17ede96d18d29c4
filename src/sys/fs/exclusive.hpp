#pragma once
// Makes names in directories where others may write: nothing is replaced, and nothing that others have put there is
// mistaken for our own. Must be called in a child, because any path may lie on a dead mount.
#include "sys/fs/walk.hpp"

#include <string>
#include <tl/expected.hpp>

namespace sharefs::sys {

/// True if both are names (hard links) of the same file; false for directories.
bool is_second_name(const Walked& one, const Walked& other);

/// Renames without replacing anything. If the file system does not support RENAME_NOREPLACE (NFS), a file gets a hard
/// link and then loses its first name, also if an interrupted call has left both names; a directory is renamed after a
/// check. Returns 0 or errno; EEXIST: the new name exists; ESTALE: the old name leads to something else now.
int rename_exclusively(const Walked& from, const Walked& to);

/// Checks by statfs(2), which asks the server.
bool is_on_nfs(int directory);

/// Opens a file, or creates it. On NFS the file is opened with O_DIRECT, which is cleared at once, so that the client
/// does not ask for a delegation (fs/nfs/nfs4proc.c, nfs4_map_atomic_open_share). While a client has a write
/// delegation, the times that it sets stay in its own cache and are lost together with the delegation (Linux 7.2), and
/// the first access of each other host waits until this host returns it.
Fd open_to_make(int directory, const std::string& name, int flags, mode_t mode, bool on_nfs);
/// Creates a file exclusively (EEXIST). The result is empty, with errno, on an error.
Fd create_file(int directory, const std::string& name, mode_t mode, int access = O_WRONLY);

/// Makes a note: a symbolic link with a target that does not exist, whose name holds all information. It takes one
/// request to the server, a file would take three. True if the note exists now. False with errno.
bool make_note(int directory, const std::string& name);

/// Returns a name for an unfinished entry next to `name`. It contains the host name, so that two hosts that share the
/// directory have different names.
std::string temporary_name(const std::string& name, const std::string& purpose);

/// Makes `name` in the open directory `parent`, with exactly this mode and an inherited set-group-id bit. Returns a
/// descriptor of the new directory, or errno; EEXIST: the name exists. mkdir(2) returns no descriptor, and by the time
/// of open(2) somebody else may have renamed another directory to the name. If others could do so, the directory is
/// made in a temporary directory that only this user can enter, and moved from there.
tl::expected<Fd, int> make_directory(int parent, const std::string& name, mode_t mode);
/// Removes the temporary directory that a killed make_directory() has left beside `name`.
void clear_unfinished_directory(int parent, const std::string& name);

} // namespace sharefs::sys

#pragma once
// The closed set of changes that sharefs can make. Rooms compose plans of them; describe, apply, invert and JSON exist
// once for all of them.
#include "base/argv.hpp"
#include "base/edit.hpp"
#include "base/result.hpp"
#include "sys/fs/file_identity.hpp"
#include "sys/mounting/mount_call.hpp"
#include "sys/process/user.hpp"
#include "sys/programs/checked_program.hpp"
#include "tree/acl.hpp"

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sharefs::plan {

using tree::Access;

/// Work in a user's home is done as that user, by openat(2) with O_NOFOLLOW for every component below `beneath`:
/// sharefs never follows a link that somebody planted.
struct Actor {
  sys::User user;
  std::string beneath; ///< the directory that every path of the action must lie below, usually the home
  /// The device and inode of `beneath`; 0: any. They alone distinguish a mounted share from the bare mount point.
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const Actor&, const Actor&) = default;
};

/// Makes a file with its whole content, replaces it atomically, or deletes it. It is a conflict if the content is
/// neither `before` nor `after`, or if the path is a link and either the action has an actor or it deletes the file.
struct File {
  std::string path;
  std::optional<std::string> before; ///< nullopt: there is no file
  std::optional<std::string> after;  ///< nullopt: the file is deleted
  std::uint32_t mode = 0644; ///< of a new file, or of a deleted one for undo; a file that is replaced keeps its mode
  std::optional<Actor> actor = {};
  friend bool operator==(const File&, const File&) = default;
};

/// Makes one directory by mkdir(2), without its parents, or removes one by rmdir(2). If the directory to make is there
/// already, it is not changed, and undo does not remove it; this also holds for a directory that is renamed to its name
/// meanwhile. A directory to remove that is not empty stays as it is: the step is "unchanged", and a note says so.
struct Directory {
  std::string path;
  std::optional<std::uint32_t> before; ///< mode of the removed directory, for undo; nullopt: the action makes one
  std::optional<std::uint32_t> after;  ///< mode of the new directory; nullopt: the action removes one
  std::optional<Actor> actor = {};
  bool guarded = false;          ///< the step fails with `permission` if somebody else could replace the directory
                                 ///< (see sys::WalkRule)
  sys::FileIdentity parent = {}; ///< identity of the parent directory, as the plan saw it
  /// Access of the removed directory, for undo: the new directory gets it. Not where an actor has removed it.
  std::optional<Access> access = {};
  friend bool operator==(const Directory&, const Directory&) = default;
};

/// Makes a symbolic link where nothing is, gives one another target atomically (symlink and rename), or unlinks one. It
/// is a conflict if neither `before` nor `after` is there, or (`checked`) if the new target does not exist.
struct Link {
  std::string path;
  std::optional<std::string> before, after; ///< link texts; nullopt: there is no link
  std::optional<Actor> actor = {};
  bool checked = false;            ///< the target must exist; only with a relative `after`
  sys::FileIdentity identity = {}; ///< identity of the link that is replaced, as the plan saw it
  friend bool operator==(const Link&, const Link&) = default;
};

/// Renames within one file system and never replaces a file (RENAME_NOREPLACE of renameat2(2)); used for backups.
struct Rename {
  std::string from, to;
  std::optional<Actor> actor;
  friend bool operator==(const Rename&, const Rename&) = default;
};

/// Replaces a directory by a link, and keeps the directory as `to` on the same file system. It uses renameat2(2) with
/// RENAME_EXCHANGE, so that the path exists at every moment; if the file system does not support that (NFS), it uses
/// rename(2) and symlink(2). `reverse` puts the directory back and removes the link. If a run was killed between two
/// calls, the same action completes it, and the inverse takes it back. It is a conflict if `path` is no longer the
/// planned directory.
struct ExchangeForLink {
  std::string path;
  std::string to;
  std::string target;
  bool reverse = false;
  std::uint64_t device = 0, inode = 0; ///< identity of the directory, as the plan saw it
  std::optional<Actor> actor;
  friend bool operator==(const ExchangeForLink&, const ExchangeForLink&) = default;
};

/// Sets owner, mode and default ACL of one file or directory (never recursive).
struct SetAccess {
  std::string path;
  std::optional<Access> before; ///< as the plan saw it; nullopt: an earlier step of the plan makes the directory
  Access after;
  std::optional<std::string> group = {}; ///< name of after.gid, for people
  sys::FileIdentity identity = {};       ///< as the plan saw it: another file or directory at this path is a conflict
  std::optional<Actor> actor = {};
  friend bool operator==(const SetAccess&, const SetAccess&) = default;
};

/// Sets or clears the inode flag `i` of a directory (chattr(1)). With it nobody, not even root, can write in a mount
/// point while nothing is mounted there. If the file system does not support the flag, nothing is changed.
struct SetImmutable {
  std::string path;
  bool immutable = true;
  std::uint64_t device = 0, inode = 0; ///< as the plan saw it: another directory at this path is a conflict
  friend bool operator==(const SetImmutable&, const SetImmutable&) = default;
};

using Mount = sys::MountCall;
using Unmount = sys::UnmountCall;

/// Changes the restrictions of a mount in use (ro, nosuid, nodev, noexec) without unmounting it. It is a conflict if
/// the present restrictions are neither `before` nor `after`.
struct Remount {
  std::string target;
  std::string before, after; ///< comma-separated, in this order; "" for none of them
  std::chrono::milliseconds deadline{30'000};
  friend bool operator==(const Remount&, const Remount&) = default;
};

/// Deletes a directory with all that is in it. This cannot be undone, so it is only for what can be made anew. It
/// follows no link and enters no other file system, whatever others rename meanwhile; it fails with `busy` if something
/// is mounted in the directory. If nothing is there, the step succeeds. Another directory than the planned one is a
/// `conflict`. With `guarded` (never used with an actor), it fails with `permission` if somebody else could replace the
/// path. With `aside`, a name in the same directory, it is renamed to that first, so that nobody finds half of it
/// by its name; `path` may be that name, where an interrupted run has left it. Without it, if a run was interrupted,
/// the same action completes it.
struct RemoveTree {
  std::string path;
  std::uint64_t device = 0, inode = 0;         ///< as the plan saw it (sys::Entry)
  std::chrono::milliseconds deadline{600'000}; ///< longest time without progress
  std::optional<Actor> actor = {};
  bool guarded = true; ///< false where a group may write; the inode is compared in any case
  std::string aside = {};
  friend bool operator==(const RemoveTree&, const RemoveTree&) = default;
};

/// Gives everything below a directory to a group. The group gets the owner's rights; directories get the set-group-id
/// bit and a default ACL; other users get no further rights. It follows no link and enters no mount. It does not change
/// files with several hard links (another name may lie elsewhere), programs with set-id bits or capabilities, and
/// files with an ACL. It cannot be undone. If a run was interrupted, the same action completes it.
struct SetTreeAccess {
  std::string path;
  std::string group; ///< name of gid, for people
  std::uint32_t gid = 0, mode = 02770;
  std::uint64_t device = 0, inode = 0; ///< as the plan saw it (sys::Entry)
  std::chrono::milliseconds deadline{3'600'000};
  friend bool operator==(const SetTreeAccess&, const SetTreeAccess&) = default;
};

/// A change of one file below a directory: a new content, a new mode, or (`removed`) its deletion. The content of a
/// file with set-id bits or capabilities is not changed.
struct FileChange {
  std::string path;          ///< below the directory
  std::string before, after; ///< sha256 of the whole content in hexadecimal; empty: the content stays
  Edits edits;               ///< turn the content `before` into `after`
  std::optional<std::uint32_t> mode_before, mode_after;
  bool removed = false;            ///< the file is deleted; only for files that can be made anew
  sys::FileIdentity identity = {}; ///< as the plan saw it; another file counts as changed since, and is left
  /// When the new content gets its name: in round 1, after all of round 0, if none of those was left, since it shows
  /// what they are to be changed for; in round 2 last.
  std::uint32_t round = 0;
  friend bool operator==(const FileChange&, const FileChange&) = default;
};

/// Changes many files below a directory. A new content is written to a new file beside the old one, with the same
/// owner, mode and ACL, and renamed over it: other hard links of the file, and processes that have it open, keep the
/// old content. If one cannot be written, no file is changed. A file that is neither as planned nor changed
/// already is left, and the step fails after all other files are done. It follows no link and enters no mount. It
/// cannot be undone if it deletes files. If a run was interrupted, the same action completes it.
struct ChangeFiles {
  std::string path;
  std::uint64_t device = 0, inode = 0; ///< as the plan saw it (sys::Entry)
  std::vector<FileChange> changes;
  std::chrono::milliseconds deadline{60'000}; ///< longest time without progress
  friend bool operator==(const ChangeFiles&, const ChangeFiles&) = default;
};

/// Runs a program of the system (exportfs, systemctl, ...), or of a user (`program`).
struct RunTool {
  Argv argv;
  Argv undo;                     ///< the opposite command; empty: there is no undo, unless the tool is `harmless`
  bool harmless = false;         ///< the tool changes nothing by itself (a reload); undo runs it again, at the end
  std::vector<int> accept = {0}; ///< exit codes that mean success
  std::chrono::milliseconds deadline{30'000};
  bool silent = false;             ///< any output is a failure, whatever the exit code (systemd-analyze verify)
  std::optional<Actor> actor = {}; ///< the tool runs as this user; `beneath` is not used
  /// The file to run for argv[0] if it lies where others may write. The program starts in its own directory, and the
  /// arguments are relative to that.
  std::optional<sys::CheckedProgram> program = {};
  friend bool operator==(const RunTool&, const RunTool&) = default;
};

using Action = std::variant<File, Directory, Link, Rename, ExchangeForLink, SetAccess, SetImmutable, Mount, Unmount,
                            Remount, RemoveTree, SetTreeAccess, ChangeFiles, RunTool>;

// Actions that have only a `before` or only an `after`.
File remove_file(std::string path, std::string before, std::uint32_t mode = 0644, std::optional<Actor> actor = {});
Directory make_directory(std::string path, std::uint32_t mode = 0755, std::optional<Actor> actor = {},
                         bool guarded = false, sys::FileIdentity parent = {});
Directory remove_directory(std::string path, std::uint32_t mode = 0755, std::optional<Actor> actor = {});
Link make_link(std::string path, std::string target, std::optional<Actor> actor = {});
Link remove_link(std::string path, std::string target, std::optional<Actor> actor = {});
/// Returns the action that ends the mount, without `force` and `lazy`.
Unmount unmount_of(const Mount& mount);

/// Returns one line in the imperative: "write /etc/exports.d/sharefs.exports", "mount storage1:/mnt/share on
/// /data/share".
std::string describe(const Action& action);
/// Returns the unified diff (3 lines of context) of a File; empty for all other actions.
std::string diff(const Action& action);
/// Returns the paths that an action changes: for conflict and nesting checks.
std::vector<std::string> touched_paths(const Action& action);
/// Returns the action that takes it back; nullopt if it cannot be undone.
std::optional<Action> invert(const Action& action);
/// True if the action deletes something that no undo can bring back.
bool deletes(const Action& action);
/// True for a tool that changes nothing by itself (RunTool::harmless).
bool is_harmless(const Action& action);
/// Returns {"kind": "file", ...}; bytes that are not UTF-8 are written as {"base64": "..."}.
nlohmann::ordered_json to_json(const Action& action);
Result<Action> action_from_json(const nlohmann::ordered_json& json);

} // namespace sharefs::plan

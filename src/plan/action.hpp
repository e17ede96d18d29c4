#pragma once
// The closed set of changes that sharefs can make. Domains compose them; describe, apply, invert and JSON exist once.
#include "base/argv.hpp"
#include "base/edit.hpp"
#include "base/result.hpp"
#include "sys/fs/file_identity.hpp"
#include "sys/mounting/mount_call.hpp"
#include "sys/process/user.hpp"
#include "sys/programs/checked_program.hpp"

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sharefs::plan {

/// Work in a user's home is done as that user, by openat(2) with O_NOFOLLOW for every component below `beneath`:
/// sharefs never follows a link that somebody planted.
struct Actor {
  sys::User user;
  std::string beneath; ///< the directory that every path of the action must lie below, usually the home
  /// Of `beneath`; 0: any. Only they tell a mounted share from the bare mount point.
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const Actor&, const Actor&) = default;
};

/// A file with its whole content: made, replaced atomically, or deleted. Conflict if its content is not `before` any
/// more, and for an actor, or where it is deleted, if it is a link.
struct File {
  std::string path;
  std::optional<std::string> before; ///< nullopt: there is none
  std::optional<std::string> after;  ///< nullopt: it is deleted
  std::uint32_t mode = 0644;         ///< of a new file, for undo of a deleted one; a replaced one keeps its own
  std::optional<Actor> actor = {};
  friend bool operator==(const File&, const File&) = default;
};

/// One directory: mkdir(2), not of its parents, or rmdir(2). Where one is to be made and is there already, nothing
/// happens, and undo leaves it; nothing that was there before is changed, whatever is renamed to its name meanwhile.
/// One that is to be removed and is not empty is left, and the step fails with `busy`.
struct Directory {
  std::string path;
  std::optional<std::uint32_t> before; ///< mode of the one that is removed, for undo; nullopt: one is made
  std::optional<std::uint32_t> after;  ///< mode of the one that is made; nullopt: it is removed
  std::optional<Actor> actor = {};
  bool guarded = false;          ///< `permission` where somebody else could replace it (see sys::WalkRule)
  sys::FileIdentity parent = {}; ///< of the directory in which it is made, as planned
  friend bool operator==(const Directory&, const Directory&) = default;
};

/// A symbolic link: made where nothing is, pointed elsewhere atomically (symlink and rename), or unlinked. Conflict if
/// neither `before` nor `after` is there, or if nothing lies where it is to lead (`checked`).
struct Link {
  std::string path;
  std::optional<std::string> before, after; ///< link texts; nullopt: there is none
  std::optional<Actor> actor = {};
  bool checked = false;            ///< `after` is relative
  sys::FileIdentity identity = {}; ///< of the link that is replaced, as planned
  friend bool operator==(const Link&, const Link&) = default;
};

/// rename(2) with RENAME_NOREPLACE on one file system: for backups.
struct Rename {
  std::string from, to;
  std::optional<Actor> actor;
  friend bool operator==(const Rename&, const Rename&) = default;
};

/// A directory becomes a link, and is kept as `to`, on the same file system. By renameat2(2) with RENAME_EXCHANGE, so
/// that at every moment something is there; where the file system does not know that (NFS), by rename(2) and
/// symlink(2). `reverse`: the directory comes back, and the link goes. What was cut off between two calls is finished
/// when run again, and taken back by the inverse. Conflict if `path` is not the planned directory any more.
struct ExchangeForLink {
  std::string path;
  std::string to;
  std::string target;
  bool reverse = false;
  std::uint64_t device = 0, inode = 0; ///< of the directory, as planned
  std::optional<Actor> actor;
  friend bool operator==(const ExchangeForLink&, const ExchangeForLink&) = default;
};

/// Owner, mode and default ACL of one file or directory (never recursive).
struct Access {
  std::uint32_t uid = 0, gid = 0, mode = 0;
  std::string default_acl; ///< short text form of acl_from_text(3), "" for none
  friend bool operator==(const Access&, const Access&) = default;
};
struct SetAccess {
  std::string path;
  std::optional<Access> before; ///< as planned; nullopt: the directory is made by an earlier step of the plan
  Access after;
  std::optional<std::string> group = {}; ///< name of after.gid, for people
  sys::FileIdentity identity = {};       ///< of what the plan saw: another thing at this path is a conflict
  std::optional<Actor> actor = {};
  friend bool operator==(const SetAccess&, const SetAccess&) = default;
};

/// The inode flag `i` of a directory (chattr(1)): nobody, root neither, writes in a mount point while nothing is
/// mounted there. A file system that does not know it is left as it is.
struct SetImmutable {
  std::string path;
  bool immutable = true;
  std::uint64_t device = 0, inode = 0; ///< as for SetAccess
  friend bool operator==(const SetImmutable&, const SetImmutable&) = default;
};

using Mount = sys::MountCall;
using Unmount = sys::UnmountCall;

/// Change the restrictions of a mount in use (ro, nosuid, nodev, noexec) without unmounting it. Conflict if they are
/// neither those of `before` nor those of `after`.
struct Remount {
  std::string target;
  std::string before, after; ///< comma-separated, in this order; "" for none of them
  std::chrono::milliseconds deadline{30'000};
  friend bool operator==(const Remount&, const Remount&) = default;
};

/// Delete a directory with all that is in it, where it can be made anew. This cannot be undone. No link is followed and
/// no other file system is entered (`busy`: something is mounted in it), whatever others rename meanwhile. If nothing
/// is there, the step succeeds. Another directory than the planned one is a `conflict`; with `guarded`, which an actor
/// never has, a path that somebody else could replace is `permission`. A run that was cut off goes on when it is run
/// again.
struct RemoveTree {
  std::string path;
  std::uint64_t device = 0, inode = 0;         ///< as planned (sys::Entry)
  std::chrono::milliseconds deadline{600'000}; ///< without progress
  std::optional<Actor> actor = {};
  bool guarded = true; ///< false where a group writes: it is still known by its inode
  friend bool operator==(const RemoveTree&, const RemoveTree&) = default;
};

/// Give what lies below a directory to a group: it gets what the owner has, directories hand the group on and get a
/// default ACL; nothing becomes wider for others. No link is followed, nothing that is mounted is entered. Left are
/// files with several names, since the others may lie elsewhere, programs with set-id bits, and what has an ACL. Cannot
/// be undone. What was cut off goes on when run again.
struct SetTreeAccess {
  std::string path;
  std::string group; ///< name of gid, for people
  std::uint32_t gid = 0, mode = 02770;
  std::uint64_t device = 0, inode = 0; ///< as planned (sys::Entry)
  std::chrono::milliseconds deadline{3'600'000};
  friend bool operator==(const SetTreeAccess&, const SetTreeAccess&) = default;
};

/// A change of one file below a directory: another content, another mode, or (`removed`) nothing. A file of which a
/// program gets rights (set-id bits, capabilities) is left.
struct FileChange {
  std::string path;          ///< below the directory
  std::string before, after; ///< sha256 of the whole content in hexadecimal; empty: it stays
  Edits edits;               ///< what makes the one of the other
  std::optional<std::uint32_t> mode_before, mode_after;
  bool removed = false;            ///< for what can be made anew
  sys::FileIdentity identity = {}; ///< as planned; another file is left as one that changed
  friend bool operator==(const FileChange&, const FileChange&) = default;
};

/// Change files below a directory, many at once. A new content is written beside the file, with its owner, mode and
/// ACL, and renamed: other names of the file (hard links) keep the old one, and so does who has it open. What is
/// neither as planned nor changed already is left, and the step fails once all others are done. No link is followed,
/// nothing that is mounted is entered. Cannot be undone where files are removed. What was cut off goes on when run
/// again.
struct ChangeFiles {
  std::string path;
  std::uint64_t device = 0, inode = 0; ///< as planned (sys::Entry)
  std::vector<FileChange> changes;
  std::chrono::milliseconds deadline{60'000}; ///< without any progress
  friend bool operator==(const ChangeFiles&, const ChangeFiles&) = default;
};

/// Run a program of the system (exportfs, systemctl, ...), or of a user (`program`).
struct RunTool {
  Argv argv;
  Argv undo;                     ///< what takes it back; empty: cannot be undone (the plan says so) unless `harmless`
  bool harmless = false;         ///< changes nothing by itself (a reload); undo runs it again, at the end
  std::vector<int> accept = {0}; ///< exit codes that are success
  std::chrono::milliseconds deadline{30'000};
  bool silent = false;             ///< any output is a failure, whatever the exit code (systemd-analyze verify)
  std::optional<Actor> actor = {}; ///< as its user; `beneath` has no meaning
  /// The program that argv[0] stands for where others may write; the program sees its directory as the working
  /// directory, and the arguments are relative to that.
  std::optional<sys::CheckedProgram> program = {};
  friend bool operator==(const RunTool&, const RunTool&) = default;
};

using Action = std::variant<File, Directory, Link, Rename, ExchangeForLink, SetAccess, SetImmutable, Mount, Unmount,
                            Remount, RemoveTree, SetTreeAccess, ChangeFiles, RunTool>;

// The actions of which only one side is there, by what they do.
File remove_file(std::string path, std::string before, std::uint32_t mode = 0644, std::optional<Actor> actor = {});
Directory make_directory(std::string path, std::uint32_t mode = 0755, std::optional<Actor> actor = {},
                         bool guarded = false, sys::FileIdentity parent = {});
Directory remove_directory(std::string path, std::uint32_t mode = 0755, std::optional<Actor> actor = {});
Link make_link(std::string path, std::string target, std::optional<Actor> actor = {});
Link remove_link(std::string path, std::string target, std::optional<Actor> actor = {});

/// One line in the imperative: "write /etc/exports.d/sharefs.exports", "mount storage1:/mnt/share on /data/share".
std::string describe(const Action& action);
/// Unified diff (3 lines of context) of a File; empty for all others.
std::string diff(const Action& action);
/// The paths that an action changes: for conflict and nesting checks.
std::vector<std::string> touched_paths(const Action& action);
/// The action that takes it back; nullopt when there is none.
std::optional<Action> invert(const Action& action);
/// Does it delete for good?
bool deletes(const Action& action);
/// {"kind": "file", ...}; bytes that are not UTF-8 as {"base64": "..."}.
nlohmann::ordered_json to_json(const Action& action);
Result<Action> action_from_json(const nlohmann::ordered_json& json);

} // namespace sharefs::plan

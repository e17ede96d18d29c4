#pragma once
// Copies on this host's own disk, of generations of environments, and of directories of shares (staged_path.hpp):
//   STAGE/UID/STORE/ENV/0003/          the copy, or the mount point of its image; STORE with `%` for `/`,
//                                      and `%%+` for `%`
//   STAGE/UID/STORE/ENV/0003.sqfs      the image, see conda/image.hpp; it gets this name when it is complete
//   STAGE/UID/STORE/ENV/uses/          the uses on this host, as notes like those in STORE/.generations/ENV/uses
//   STAGE/UID/STORE/ENV/0003.complete  the mark, written when the copy is complete. It has the path of the generation,
//                                      the time when that was made, since a later one may have its number, and for an
//                                      image its checksum. A fourth line "owner=UID" means that nothing is copied: the
//                                      image is mounted from the share, and belongs to UID there. A last line "as=UID"
//                                      names the user who reads the share for root.
//   STAGE/UID/PARENT/NAME/HASH/...     the same for PARENT/NAME; HASH of its image, or the fingerprint of its files
// UID is the user who has made the copy. A copy that another user could have made is never used. STAGE/UID/STORE/ENV
// keeps out the same users as the directories above the generation.
#include "conda/image.hpp"
#include "conda/running.hpp"
#include "plan/plan.hpp"
#include "tree/tree.hpp"

#include <set>

namespace sharefs::conda {

/// Returns the directory of the copies of an environment (`source`: STORE/ENV), or of a directory of a share.
std::string staged_directory(const std::string& stage, unsigned uid, const std::string& source);
/// Returns the `source` of such a directory for messages only, since long names cannot be decoded.
std::string staged_source(const std::string& directory);
std::string complete_mark(const std::string& copy);    ///< of the path of a copy
std::string staged_uses(const std::string& directory); ///< of staged_directory()

/// The content of a mark.
struct CopyMark {
  std::string source;                       ///< path of the generation, or of the directory
  std::string state;                        ///< time when the generation was made, or the survey of the directory
  std::string sha256 = {};                  ///< of the image; empty: files are copied
  std::optional<unsigned> share_owner = {}; ///< set if the image is mounted from the share: its owner there
  std::optional<unsigned> reader = {};      ///< who reads the share for root
  friend bool operator==(const CopyMark&, const CopyMark&) = default;
};
std::string format_mark(const CopyMark& mark);
/// Returns a mark without a source for any other text.
CopyMark parse_mark(std::string_view text);

struct StagedCopy {
  sys::Entry tree = {}, mark = {};
  sys::Entry image = {}, part = {}; ///< not read by find_staged(); `part`: an image that fetch() has not finished
  bool is_bound = false; ///< it is mounted over its directory of a share; only set by find_copies(), as `older`
  std::optional<plan::Unmount> older = {}; ///< ends an older mount over that directory, see older_bind()

  /// Returns the number of a generation, or the hash of a directory.
  [[nodiscard]] std::string name() const;
  /// Returns the path of the generation or directory that was copied. Without a mark it is only for messages.
  [[nodiscard]] std::string source() const;
  /// Returns the content of its mark; empty if it has none.
  [[nodiscard]] CopyMark what() const;

  /// True if it has a mark and can be read now.
  [[nodiscard]] bool is_whole() const;
  /// True if its image was written to after it was found complete, so that its content is not certain.
  [[nodiscard]] bool is_doubtful() const;
  /// True if it is a mount of the image on the share.
  [[nodiscard]] bool is_on_share() const;
  /// True if an image is mounted on `tree`.
  [[nodiscard]] bool is_mounted() const;
  /// True for the mount of a squashfuse that has ended: a batch system ends it with the job that has started it.
  [[nodiscard]] bool is_dead() const;
  /// True for a copy of a directory without a mark: its command was killed, or `undo` has left it, or it is being made.
  [[nodiscard]] bool is_cut_off() const;
};
/// Returns the mount of the image with this mark at `copy`, a resolved path, as `uid` makes it: root by a loop device,
/// a user by squashfuse.
plan::Mount mount_of_image(const std::string& copy, const CopyMark& mark, unsigned uid);
/// Returns the bind mount of the copy with this mark over its directory of the share.
plan::Mount bind_of(const std::string& copy, const CopyMark& mark);
/// Returns the action that ends the mount on a copy that is_mounted() or is_dead(). Without a mark it is the mount of
/// the image beside the copy.
plan::Unmount unmount_copy(const StagedCopy& copy);
/// Adds the steps that remove a copy, with `unmark` also its mark. The mark goes after the image is unmounted, because
/// a busy mount stays, and the copy with it. `why`: the reason for the unmounting.
void add_removal(const StagedCopy& copy, const std::string& group, const std::string& why, bool unmark,
                 plan::Plan& plan);
/// Returns the action that deletes exactly this entry, by its device and inode.
plan::RemoveTree removal_of(const sys::Entry& entry);

/// The directory of the copies of one environment, or of one directory of a share, with all entries named like copies.
struct StagedCopies {
  sys::Entry directory;           ///< with its names
  std::vector<StagedCopy> copies; ///< by name
  [[nodiscard]] const StagedCopy* find(const std::string& name) const;
};
/// Reads the copies of user `uid`. An entry that another user could replace is not read.
StagedCopies probe_staged(sys::System& system, const std::string& stage, unsigned uid, const std::string& source);

/// Reads all entries named like copies in these directories (listed, with their names), with or without a mark.
std::vector<StagedCopy> read_copies(sys::System& system, const std::vector<sys::Entry>& directories);
/// Returns the query that reads the record of a generation.
sys::EntryQuery record_query(const GenerationPath& generation);
/// Finds a complete copy of this generation, made by root or by `uid`; nullopt if there is none, or if `stage` is
/// empty. The record of the generation is read only if there is a copy; `record` is its entry if it was read already.
std::optional<StagedCopy> find_staged(sys::System& system, const std::string& stage, unsigned uid,
                                      const GenerationPath& generation, const sys::Entry* record = nullptr);

/// Returns `note` (use_note()) for a staged copy, which is noted only on this host, and not on the share.
sys::Note staged_use_note(sys::Note note, const std::string& store);
/// Returns the names of copies whose programs run here, or that a command of `conda run` uses.
std::set<std::string> busy_copies(sys::System& system, const SharedEnvironment& environment,
                                  const StagedCopies& staged);

/// The mode and group of the directory of copies, which decide who may enter it. `gid` nullopt: the group stays.
struct StageAccess {
  std::uint32_t mode = 0755;
  std::optional<std::uint32_t> gid = {};
  friend bool operator==(const StageAccess&, const StageAccess&) = default;
};
/// Returns the access to a copy. A copy by root is open to exactly those who can reach `source` (resolved): 0755 if
/// everybody may search each directory above it, 0750 with the only group that may, 0705 with the only group that may
/// not, 0700 if only root may. A copy by a user is for that user: 0700. `permission`: no such mode fits, so a copy by
/// root would let others in, or serve root only.
Result<StageAccess> stage_access(sys::System& system, const std::string& source,
                                 const std::optional<sys::User>& as = {});
/// Returns the action that sets this access; nullopt if the directory has it.
std::optional<plan::SetAccess> admit(const sys::Entry& directory, const StageAccess& access);

/// The copy that shall lie on this host's own disk.
struct StageRequest {
  std::string copy = {}; ///< name of the copy; empty: all copies are removed
  CopyMark what = {};    ///< the content of its mark
  std::string name = {}; ///< of the environment, or of the directory
  StageAccess access = {};
  std::set<std::string> busy = {}; ///< copies that a command uses, which therefore stay
  unsigned uid = 0;                ///< the user who stages it
  bool mounts_images = true;       ///< this user can mount images here; if not, an unmounted image is not used
  bool keeps_others = false;       ///< other copies stay, for their readers
  bool is_doubtful = false;        ///< files of the copy have changed since they were copied
};
struct StagePlan {
  plan::Plan plan;
  bool copies = false;           ///< a copy is made after the steps of the unnamed group and before the others
  bool by_image = false;         ///< the image is copied, or mounted from the share
  std::set<std::string> removed; ///< copies whose marks go in the unnamed group, so that no command begins to use them
};
/// Plans how the requested copy gets its place, and the removal of other copies.
StagePlan plan_stage(const StagedCopies& staged, const StageRequest& request);

} // namespace sharefs::conda

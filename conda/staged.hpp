#pragma once
// Copies on this host's own disk, of generations of environments, and of directories of shares (packed_path.hpp):
//   STAGE/UID/STORE/ENV/0003/          the copy, or where its image is mounted; STORE with `%` for `/`
//   STAGE/UID/STORE/ENV/0003.sqfs      the image, see conda/image.hpp; whole from the moment when it has this name
//   STAGE/UID/STORE/ENV/uses/          who runs them here, by notes as in STORE/.generations/ENV/uses
//   STAGE/UID/STORE/ENV/0003.complete  the path of the generation, and when it was made: a later one may have its
//                                      number; and the checksum of the image, if it is one. It is written when the copy
//                                      is complete. "owner=UID" in a fourth line: nothing is copied, and the image is
//                                      mounted where it lies on the share, whose owner that is. "as=UID" in the last
//                                      line: who reads the share for root.
//   STAGE/UID/PARENT/NAME/HASH/...     the same of PARENT/NAME; HASH of its image, or the fingerprint of its files
// UID made it. What somebody else could have made is never run. STAGE/UID/STORE/ENV lets in nobody whom the directories
// above the generation keep out.
#include "conda/image.hpp"
#include "conda/running.hpp"
#include "plan/plan.hpp"
#include "tree/tree.hpp"

#include <set>

namespace sharefs::conda {

/// Of the directory that holds the copies of an environment (`source`: STORE/ENV), or of a directory of a share.
std::string staged_directory(const std::string& stage, unsigned uid, const std::string& source);
/// `source` of such a directory, for people: not every name can be read back.
std::string staged_source(const std::string& directory);
std::string complete_mark(const std::string& copy);    ///< of the path of a copy
std::string staged_uses(const std::string& directory); ///< of staged_directory()

/// What a mark says.
struct CopyMark {
  std::string source;                       ///< path of the generation, or of the directory
  std::string state;                        ///< when the generation was made, or what the directory held
  std::string sha256 = {};                  ///< of the image; empty: files are copied
  std::optional<unsigned> share_owner = {}; ///< the image is mounted where it lies on the share, and is this user's
  std::optional<unsigned> reader = {};      ///< who reads the share for root
  friend bool operator==(const CopyMark&, const CopyMark&) = default;
};
std::string format_mark(const CopyMark& mark);
/// Of any other text a mark without a source.
CopyMark parse_mark(std::string_view text);

struct StagedCopy {
  sys::Entry tree = {}, mark = {};
  sys::Entry image = {}, part = {}; ///< not of find_staged(); `part`: what fetch() has left

  /// The number of a generation, or the hash of a directory.
  [[nodiscard]] std::string name() const;
  /// What its mark says; empty: it has none.
  [[nodiscard]] CopyMark what() const;

  /// It has a mark, and can be read now.
  [[nodiscard]] bool is_whole() const;
  /// Its image was written to after it was found right: whether it is so still is not known.
  [[nodiscard]] bool is_doubtful() const;
  /// It is the image on the share, which may be mounted.
  [[nodiscard]] bool is_on_share() const;
  /// An image is mounted on `tree`.
  [[nodiscard]] bool is_mounted() const;
  /// What is mounted there is of a squashfuse that has ended: a batch system ends it with the job that started it.
  [[nodiscard]] bool is_dead() const;
};
/// The mount of the image with this mark at `copy`, the resolved path, as `uid` makes it: root by a loop device, a user
/// by squashfuse.
plan::Mount mount_of_image(const std::string& copy, const CopyMark& mark, unsigned uid);
/// The mount of the copy with this mark over the directory of the share that it is of.
plan::Mount bind_of(const std::string& copy, const CopyMark& mark);
/// What ends a mount.
plan::Unmount unmount_of(const plan::Mount& mount);
/// What ends the mount on a copy that is_mounted() or is_dead(): a mount whose mark is gone is of an image that lies
/// beside it.
plan::Unmount unmount_copy(const StagedCopy& copy);
/// Adds the steps that take a copy away, with `unmark` its mark, too: not before its image is unmounted, because a
/// mount that is busy stays, and the copy with it. `why`: of the unmounting.
void add_removal(const StagedCopy& copy, const std::string& group, const std::string& why, bool unmark,
                 plan::Plan& plan);
/// What deletes this very entry.
plan::RemoveTree removal_of(const sys::Entry& entry);

/// The directory of the copies of one environment, or of one directory of a share, with what is called as a copy in it.
struct StagedCopies {
  sys::Entry directory;           ///< with its names
  std::vector<StagedCopy> copies; ///< by name
  [[nodiscard]] const StagedCopy* find(const std::string& name) const;
};
/// `uid`: whose copies they are. What somebody else could replace is not looked at.
StagedCopies probe_staged(sys::System& system, const std::string& stage, unsigned uid, const std::string& source);

/// All that is called as a copy in a directory of copies (`directory` has its names), with or without a mark.
std::vector<StagedCopy> probe_copies(sys::System& system, const std::vector<sys::Entry>& directories);
/// All copies below these directories, as one of `makers` made them; of another than a local disk none. Those that were
/// cut off have no mark.
std::vector<StagedCopy> find_copies(sys::System& system, const std::set<std::string>& stages,
                                    const std::set<unsigned>& makers);
/// A whole copy of this generation, of root or of this process's user; nullopt: there is none.
std::optional<StagedCopy> find_staged(sys::System& system, const std::string& stage, unsigned uid,
                                      const GenerationPath& generation);

/// `note` (use_note()) for a copy: its server need not know who works with that.
sys::Note staged_use_note(sys::Note note, const std::string& store);
/// Copies whose programs run here, or that a command of `conda run` works with.
std::set<std::string> busy_copies(sys::System& system, const SharedEnvironment& environment,
                                  const StagedCopies& staged);

/// Who may enter the directory of the copies. `gid` nullopt: as it is.
struct StageAccess {
  std::uint32_t mode = 0755;
  std::optional<std::uint32_t> gid = {};
};
/// What root copies is for all who can reach `source` (resolved), and for nobody else: 0755 where everybody may search
/// each directory above it, 0750 of the group that alone may, 0700 where only root may. What a user copies is for this
/// user: 0700. `permission` where root's copy could let others in, or would be of use to root only.
Result<StageAccess> stage_access(sys::System& system, const std::string& source,
                                 const std::optional<sys::User>& as = {});
/// What makes it so; nullopt: it is.
std::optional<plan::SetAccess> admit(const sys::Entry& directory, const StageAccess& access);

/// What is to lie on this host's own disk.
struct StageRequest {
  std::string copy = {}; ///< its name; empty: none, all copies go
  CopyMark what = {};    ///< that its mark is to say
  std::string name = {}; ///< of the environment, or of the directory
  StageAccess access = {};
  std::set<std::string> busy = {}; ///< copies that a command works with: they stay
  unsigned uid = 0;                ///< who stages it
  bool mounts_images = true;       ///< it can; an image that is here and not mounted is of no use otherwise
  bool keeps_others = false;       ///< other copies stay, for those who read them
  bool is_doubtful = false;        ///< files of the copy are not as they were copied
};
struct StagePlan {
  plan::Plan plan;
  bool copies = false;           ///< it is copied between the steps of the unnamed group and the others
  bool by_image = false;         ///< its image is what is copied, or mounted where it lies
  std::set<std::string> removed; ///< their marks go in the unnamed group, so that nobody begins with them any more
};
StagePlan plan_stage(const StagedCopies& staged, const StageRequest& request);

} // namespace sharefs::conda

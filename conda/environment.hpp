#pragma once
// One environment as it lies on the disk, compared with its records:
//   probe    reads all of it, in a child that may take its time
//   diagnose what is wrong with it (SF5xx)
//   plan     what mends it: prefixes, checksums, modes, compiled files
#include "base/diagnosis.hpp"
#include "conda/prefix.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"
#include "tree/tree.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::conda {

/// Which contents of files are looked at.
enum class Reading {
  all,
  own,      ///< not those of files with further names: in a generation they are of one that was verified
  prefixes, ///< not those of files in which their packages have no prefix, as far as they are not changed since
};

struct EnvironmentRequest {
  std::string path;        ///< absolute, normalized; may lead through links
  std::string prefix = {}; ///< that its files should name; empty: the one they name if that leads here, or `path`
  std::vector<std::string> from = {}; ///< prefixes that are replaced whatever lies there
  Reading reading = Reading::all;
  bool mixed = false; ///< files of other users are mended, too: it is a copy of our making
  /// Files that are larger together are listed, and none is read: what has no room is not searched for days.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
};

enum class Leads {
  here,        ///< another path of the same directory
  nowhere,     ///< no environment is there (any more), or it has no answer
  environment, ///< another environment
};

struct PrefixUse {
  std::string prefix;
  Leads leads = Leads::nowhere;
  bool certain = false;  ///< it stands in a file that is as its package's installation has left it
  std::size_t files = 0; ///< that hold it, without compiled Python
  friend bool operator==(const PrefixUse&, const PrefixUse&) = default;
};

/// What the prefixes of an environment are to become.
struct PrefixDecision {
  std::string right;                ///< the one that its files should name
  std::vector<std::string> replace; ///< by `right`; the longest first
  std::vector<std::string> left;    ///< of other environments, which may be meant
  friend bool operator==(const PrefixDecision&, const PrefixDecision&) = default;
};
PrefixDecision decide_prefixes(const std::vector<PrefixUse>& uses, const EnvironmentRequest& request);

/// What can be said of one path in it. In the order of the report.
enum class Kind {
  missing,       ///< a package's file that is not there
  altered,       ///< another content than the package's
  bad_record,    ///< cannot be read
  unreadable,    ///< could not be compared
  changing,      ///< changed while it was read
  old_prefix,    ///< names a prefix that leads nowhere, or to where it came from
  second_prefix, ///< names this directory by another path
  other_prefix,  ///< names another environment
  no_room,       ///< names a prefix that cannot be replaced
  closed,        ///< others than its owner cannot read it, but may enter the environment
  stale_pyc,     ///< compiled from another source, or with the name of an old prefix
  old_checksum,  ///< the package's content with the right prefix, but its record has not followed
  outside_link,  ///< a link that leads out of the environment
  editable,      ///< code that lies elsewhere
  set_id,        ///< a program with set-id bits
  special,       ///< a FIFO, a socket or a device
  foreign,       ///< belongs to another user than the environment
  nobody,        ///< belongs to nobody: its owner is not mapped
  nfs_leftover,  ///< .nfs0000...: deleted, but open on some host
  unmanaged,     ///< of no package of conda
};
const char* to_string(Kind kind); ///< "missing", "altered", ...

struct Found {
  Kind kind = Kind::missing;
  std::string path;   ///< below the environment
  std::string detail; ///< a prefix, a link's target, a reason; may be empty
  friend bool operator==(const Found&, const Found&) = default;
};

/// A link whose target names a prefix that is to be replaced.
struct MovedLink {
  std::string path, before, after;
  sys::FileIdentity identity = {}; ///< of the link
  friend bool operator==(const MovedLink&, const MovedLink&) = default;
};

struct EnvironmentState {
  std::string path; ///< as asked
  std::uint64_t device = 0, inode = 0;
  std::uint32_t uid = 0, gid = 0, mode = 0; ///< of the directory
  std::uint64_t packages = 0, files = 0, managed = 0, bytes = 0;
  bool others_write = false; ///< more people than the owner of the directory; of root's also: on the way to it
  /// The number of the owner's own group, as many users have one, if it may write: it counts as the owner.
  std::optional<std::uint32_t> own_group = {};
  std::optional<sys::User> owner = {};    ///< as this host knows the user, where a program is to be run as that one
  std::string python;                     ///< bin/python3.11; empty: there is none
  sys::FileIdentity python_identity = {}; ///< of that file
  std::vector<PrefixUse> prefixes;
  PrefixDecision decision;
  std::vector<Found> found;
  std::vector<plan::FileChange> contents; ///< prefixes, and the checksums in the records
  std::vector<plan::FileChange> modes;
  std::vector<plan::FileChange> compiled; ///< to be deleted
  std::string uncompiled;                 ///< directory of Python that is compiled with them; empty: none
  std::vector<MovedLink> links;
  std::string shared;       ///< name of the shared environment of which it is a generation; empty: of none
  std::string closed_above; ///< directory above that generation that lets none of those in to whom it is open

  [[nodiscard]] std::size_t count(Kind kind) const;
};

/// Could somebody else put another program into `directory`? What root asks before it runs one of it.
bool others_could_replace(sys::System& system, const std::string& directory);

/// Errors: `not_found` (no directory, or no environment), `timeout`, `interrupted`, or what the disk says. What is
/// wrong inside of it stands in `found`.
Result<EnvironmentState> probe(sys::System& system, const EnvironmentRequest& request, const tree::OnProgress& watch);

/// SF308, if a directory above the generation at `path` keeps out those to whom it is open.
Diagnoses diagnose_above(sys::System& system, const std::string& path);

/// "bin/a, bin/b, bin/c and 12 more", as a terminal may show them.
std::string first_of(const std::vector<std::string>& names);

/// One for each kind, with the number and the first of the paths.
Diagnoses diagnose(const EnvironmentState& state);

/// Prefixes and links, compiled files, and with `modes` also who may read. `live`: programs may be run. Empty: nothing
/// of this is to be done.
plan::Plan plan_repair(const EnvironmentState& state, bool modes, bool live);
/// What is still found once plan_repair() with modes is done.
Diagnoses diagnose_unrepaired(const EnvironmentState& state);

/// The checks of `conda relocate` before all files are read: it lies where its files are to say, and may be changed
/// there. Errors: `unsupported`: it lies elsewhere, or is a generation, in which nothing changes; `not_found`; `usage`.
Result<void> check_relocation(sys::System& system, const EnvironmentRequest& request);
/// What relocating cannot mend: an environment with errors of these is left as it is.
Diagnoses diagnose_relocation(const EnvironmentState& state);

} // namespace sharefs::conda

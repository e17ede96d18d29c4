#pragma once
// Compares one environment on disk with its records:
//   probe    reads all of it, in a child without a deadline for the whole
//   diagnose reports what is wrong with it (SF5xx)
//   plan     repairs it: prefixes, checksums, modes, compiled files
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

/// The files whose contents are read.
enum class Reading {
  all,
  own,      ///< without files that have several names: in a generation they come from one that was verified
  prefixes, ///< without unchanged files of packages whose records have no prefix for them
};

struct EnvironmentRequest {
  std::string path; ///< absolute, normalized; may lead through links
  /// The prefix that its files should name. Empty: the one that they name, if it leads here, or `path`.
  std::string prefix = {};
  std::vector<std::string> from = {}; ///< prefixes that are replaced even if an environment lies there
  Reading reading = Reading::all;
  bool mixed = false; ///< files of other users are repaired, too, because sharefs has made this copy
  /// If all files together are larger, they are listed and none is read: it would take long, and there is no room.
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
};

/// The place to which a prefix leads now.
enum class Leads {
  here,        ///< to this environment, by this or another path
  nowhere,     ///< no environment is there, or there was no answer
  environment, ///< to another environment
};

struct PrefixUse {
  std::string prefix;
  Leads leads = Leads::nowhere;
  bool certain = false;  ///< a file that is unchanged since its installation names it
  std::size_t files = 0; ///< number of files that name it, without compiled Python
  friend bool operator==(const PrefixUse&, const PrefixUse&) = default;
};

/// The decision which prefixes are replaced.
struct PrefixDecision {
  std::string right;                ///< the prefix that the files should name
  std::vector<std::string> replace; ///< prefixes that `right` replaces, the longest first
  std::vector<std::string> left;    ///< prefixes of other environments, which may be intended and stay
  friend bool operator==(const PrefixDecision&, const PrefixDecision&) = default;
};
/// Replaces prefixes that lead here or nowhere, that a file unchanged since its installation names, or that the request
/// lists; leaves those of other environments, and those above the right prefix.
PrefixDecision decide_prefixes(const std::vector<PrefixUse>& uses, const EnvironmentRequest& request);

/// The findings about one path, in the order of the report.
enum class Kind {
  missing,       ///< a package's file does not exist
  altered,       ///< its content is not the package's
  bad_record,    ///< a record that cannot be used
  unreadable,    ///< cannot be read, so it was not compared
  changing,      ///< changed while it was read
  old_prefix,    ///< names a prefix that leads nowhere, or to the place it was copied from
  second_prefix, ///< names this directory by another path
  other_prefix,  ///< names another environment
  no_room,       ///< names a prefix that cannot be replaced
  closed,        ///< users who may enter the environment cannot read it
  stale_pyc,     ///< compiled from another source, or names an old prefix
  old_checksum,  ///< has the package's content with the right prefix, but its record has an old checksum
  outside_link,  ///< a link that leads out of the environment
  editable,      ///< an editable install, whose code lies elsewhere
  set_id,        ///< a program with set-id bits
  special,       ///< a FIFO, a socket or a device
  foreign,       ///< belongs to another user than the environment
  nobody,        ///< belongs to nobody, because its owner is not mapped
  nfs_leftover,  ///< .nfs0000...: a file that was deleted while it was open on some host
  unmanaged,     ///< belongs to no package of conda
};
const char* to_string(Kind kind); ///< "missing", "altered", ...

struct Found {
  Kind kind = Kind::missing;
  std::string path;   ///< below the environment
  std::string detail; ///< a prefix, a link's target, a reason; may be empty
  friend bool operator==(const Found&, const Found&) = default;
};

struct EnvironmentState {
  std::string path; ///< as in the request
  std::uint64_t device = 0, inode = 0;
  std::uint32_t uid = 0, gid = 0, mode = 0; ///< of the directory
  std::uint64_t packages = 0, files = 0, managed = 0, bytes = 0;
  /// Others than its owner can write in it; if root owns it, also: can replace a directory above its programs.
  bool others_write = false;
  /// The number of the owner's private group, if that may write: it counts as the owner.
  std::optional<std::uint32_t> own_group = {};
  std::optional<sys::User> owner = {};    ///< as this host knows the user; set if a program may run in that name
  std::string python;                     ///< bin/python3.11; empty: there is none
  sys::FileIdentity python_identity = {}; ///< of that file
  std::vector<PrefixUse> prefixes;
  PrefixDecision decision;
  std::vector<Found> found;
  std::vector<plan::FileChange> contents; ///< changes of prefixes, and of the checksums in the records
  std::vector<plan::FileChange> modes;
  std::vector<plan::FileChange> compiled; ///< compiled files that will be deleted
  std::string uncompiled;                 ///< a directory of Python files to compile with them; empty: none
  std::vector<plan::Link> links;          ///< links to replaced prefixes; paths are below the environment
  std::string shared;                     ///< name of the shared environment if this is a generation of it; else empty
  std::string closed_above; ///< directory above the generation that keeps out the users to whom it is open

  [[nodiscard]] std::size_t count(Kind kind) const;
};

/// True if another user could put a program into `directory`. Root checks that before it runs a program from there.
bool others_could_replace(sys::System& system, const std::string& directory);

/// Reads the environment. Errors: `not_found` (no directory, or no environment), `timeout`, `interrupted`, or the error
/// of the file system. Faults inside of the environment are listed in `found`.
Result<EnvironmentState> probe(sys::System& system, const EnvironmentRequest& request, const tree::OnProgress& watch);

/// SF308, if a directory above the generation at `path` keeps out users to whom the generation is open.
Diagnoses diagnose_above(sys::System& system, const std::string& path);

/// Returns "bin/a, bin/b, bin/c and 12 more", without control characters.
std::string first_of(const std::vector<std::string>& names);

/// Returns one diagnosis for each kind, with the number of paths and the first of them.
Diagnoses diagnose(const EnvironmentState& state);

/// Plans the repair of prefixes, links and compiled files, and with `modes` also of modes. With `live` the plan may run
/// Python, to compile files again. Empty if nothing can be repaired.
plan::Plan plan_repair(const EnvironmentState& state, bool modes, bool live);
/// Returns the diagnoses that remain after plan_repair() with modes is done; with `of_generation` those that remain
/// after make_repaired_generation().
Diagnoses diagnose_unrepaired(const EnvironmentState& state, bool of_generation = false);

/// The checks of `conda relocate` before all files are read: the environment lies at its new prefix, and may be
/// changed. Errors: `unsupported`: it lies elsewhere, or is a generation, which is never changed; `not_found`; `usage`.
Result<void> check_relocation(sys::System& system, const EnvironmentRequest& request);
/// Returns the faults that `conda relocate` cannot repair. If one of them is an error, the environment is not changed.
Diagnoses diagnose_relocation(const EnvironmentState& state);

} // namespace sharefs::conda

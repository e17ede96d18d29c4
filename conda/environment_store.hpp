#pragma once
// Reads the generations, records and notes of one environment in STORE/.generations, with deadlines. Changes nothing.
#include "conda/generation.hpp"
#include "sys/leases/lease.hpp"
#include "sys/system.hpp"

#include <algorithm>
#include <utility>

namespace sharefs::conda {

/// Limit of all records of one environment together. With many generations less is read of each.
inline constexpr std::size_t k_all_records = 64U << 20U;
/// Limit of the notes of uses that are read.
inline constexpr std::size_t k_most_uses = 10'000;

struct StoredGeneration {
  unsigned number = 0;
  sys::Entry entry = {}; ///< its directory
  std::optional<Generation> record = {};
  std::string problem = {};               ///< why there is no record
  std::optional<std::string> pinned = {}; ///< the text of NNNN.pinned, which keeps it and may be empty
  sys::Entry record_entry = {};           ///< the file of the record, with its content
  sys::Entry image = {}, image_note = {}; ///< of image.hpp; not exists() if there is no image

  /// Returns the original that `conda share` has copied. nullptr if it was not made by a share, or if its record
  /// belongs neither to root nor to `owner`, the owner of the original: any user who may write in the store may have
  /// written it.
  [[nodiscard]] const Original* original(std::uint32_t owner) const;
};

struct SharedEnvironment {
  std::string store, name;
  sys::Entry entry = {};                          ///< STORE/ENV, not followed
  sys::Entry root = {};                           ///< STORE/.generations/ENV with its names
  unsigned current = 0;                           ///< present generation; 0: STORE/ENV is no link to a generation
  std::vector<StoredGeneration> generations = {}; ///< by number
  std::vector<std::string> unfinished = {};       ///< names in `root`: new-..., old-...
  std::vector<std::string> doubtful = {};      ///< such names that may be a user's own directory, see find_doubtful()
  std::vector<std::string> left_images = {};   ///< names of images without a generation, see left_images()
  std::optional<sys::LeaseHolder> holder = {}; ///< who changes it now
  std::int64_t held = 0;                       ///< last renewal of the lease, by the server's clock (seconds)
  std::vector<Use> uses = {};
  std::string unknown_uses = {}; ///< why not all of `uses` are known; empty: all are
  std::string verified = {};     ///< text of the note of verified.hpp
  unsigned highest = 0;          ///< the highest number that is known to have been used

  [[nodiscard]] std::string path() const;                ///< STORE/ENV
  [[nodiscard]] std::string path(unsigned number) const; ///< of a generation
  [[nodiscard]] const StoredGeneration* find(unsigned number) const;
  [[nodiscard]] unsigned last() const { return generations.empty() ? 0 : generations.back().number; }
  /// Returns the number of a new generation. No number is used twice, because a host may have staged the earlier one.
  [[nodiscard]] unsigned next() const { return std::max(highest, last()) + 1; }
  /// True if somebody has removed STORE/ENV, but its generations exist.
  [[nodiscard]] bool lost_its_name() const { return entry.kind == sys::EntryKind::missing && !generations.empty(); }
};

/// Reads the environment as this process's user, or as `as` where the server refuses root (read_as_permitted()).
/// Errors: `timeout`, `permission`, or the error of the file system. A missing environment is no error.
Result<SharedEnvironment> probe_environment(sys::System& system, const std::string& store, const std::string& name,
                                            const std::optional<sys::User>& as = {});

/// The version of Python and the packages of an environment: conda's by its records, and those of pip.
struct Contents {
  std::string python;
  std::vector<Package> packages; ///< by name
};
/// Reads only names of files and directories. Errors: those of the file system, for a directory that cannot be read.
Result<Contents> read_contents(sys::System& system, const std::string& path);

/// Returns the name of a user; "uid 1001" if this host does not know the user.
std::string user_name(sys::System& system, std::uint32_t uid);

/// Returns the time (seconds since 1970) by which notes are judged: the server's if this process holds the lease, since
/// the clock of this host may be wrong by months, and notes are what keeps generations that are in use.
std::int64_t time_of(sys::System& system, const SharedEnvironment& environment);

} // namespace sharefs::conda

#pragma once
// Reads what STORE/.generations says of one environment, with deadlines. Nothing here changes anything.
#include "conda/generation.hpp"
#include "sys/leases/lease.hpp"
#include "sys/system.hpp"

#include <algorithm>

namespace sharefs::conda {

/// Of all records of one environment together. Many generations are read with less for each.
inline constexpr std::size_t k_all_records = 64U << 20U;
/// Notes of uses that are looked at.
inline constexpr std::size_t k_most_uses = 10'000;

struct StoredGeneration {
  unsigned number = 0;
  sys::Entry entry = {}; ///< its directory
  std::optional<Generation> record = {};
  std::string problem = {};               ///< why there is no record
  std::optional<std::string> pinned = {}; ///< the text of the file that keeps it, which may be empty
  sys::Entry record_entry = {};           ///< the file, with its content
  sys::Entry image = {}, image_note = {}; ///< its image (image.hpp); not exists(): there is none

  /// What `conda share` has copied; nullptr: it is not of a share, or its record is somebody else's than root's or of
  /// `owner`, whose the directory is. Whoever may write in the store may have written it.
  [[nodiscard]] const Original* original(std::uint32_t owner) const;
};

struct SharedEnvironment {
  std::string store, name;
  sys::Entry entry = {};                          ///< STORE/ENV, not followed
  sys::Entry root = {};                           ///< STORE/.generations/ENV with its names
  unsigned current = 0;                           ///< 0: STORE/ENV is no link to a generation
  std::vector<StoredGeneration> generations = {}; ///< by number
  std::vector<std::string> unfinished = {};       ///< names in `root`: new-..., old-...
  std::vector<std::string> doubtful = {};         ///< of that form, and perhaps somebody's own directory, see ours_of()
  std::vector<std::string> left_images = {};      ///< names in `root` that no generation has, see left_images()
  std::optional<sys::LeaseHolder> holder = {};    ///< who changes it now
  std::int64_t held = 0;                          ///< when he last said so, by the clock of the server (seconds)
  std::vector<Use> uses = {};
  std::string unknown_uses = {}; ///< why not all of `uses` are known; empty: they are
  unsigned highest = 0;          ///< number that is known to have been used

  [[nodiscard]] std::string path() const;                ///< STORE/ENV
  [[nodiscard]] std::string path(unsigned number) const; ///< of a generation
  [[nodiscard]] const StoredGeneration* find(unsigned number) const;
  [[nodiscard]] unsigned last() const { return generations.empty() ? 0 : generations.back().number; }
  /// Of a new generation: never one that was used before. A host may have staged what was called so.
  [[nodiscard]] unsigned next() const { return std::max(highest, last()) + 1; }
  /// Somebody has removed STORE/ENV, but what it led to is there.
  [[nodiscard]] bool lost_its_name() const { return entry.kind == sys::EntryKind::missing && !generations.empty(); }
};

/// What lies there, as this process's user or, where root is refused (see()), `as` sees it. Errors: `timeout`,
/// `permission`, or what the disk says; nothing there is no error.
Result<SharedEnvironment> probe_environment(sys::System& system, const std::string& store, const std::string& name,
                                            const std::optional<sys::User>& as = {});

/// The packages in an environment: conda's by its records, and what pip has put beside them; and its Python's version.
struct Contents {
  std::string python;
  std::vector<Package> packages; ///< by name
};
Result<Contents> read_contents(sys::System& system, const std::string& path);

/// The name of a user; "uid 1001" if this host does not know it.
std::string user_name(sys::System& system, std::uint32_t uid);

/// Does the process of a use still run? nullopt: it is on another host, and only that one knows; or this one hides it.
std::optional<bool> runs(sys::System& system, const Use& use);
/// Does it keep its generation? A process that runs here does if the note is its user's own; any other note, also one
/// that names somebody else's process, while it is fresh.
bool keeps(sys::System& system, const Use& use);

} // namespace sharefs::conda

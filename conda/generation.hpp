#pragma once
// The records and notes about the generations of a shared environment, and their places. Pure.
//   STORE/ENV -> .generations/ENV/0003       the stable path, which users see
//   STORE/.generations/ENV/0003/             the environment; nothing in it changes once it has this name
//   STORE/.generations/ENV/0003.json         its record
//   STORE/.generations/ENV/0003.pinned       a user's request that `conda gc` keeps 0003
//   STORE/.generations/ENV/new-0004.XXXXXX/  a generation that is being made, or was left by a killed command
//   STORE/.generations/ENV/old-0001.XXXXXX/  a generation that is being deleted
//   STORE/.generations/ENV/lock              the lease of the command that changes the environment (sys::Lease)
//   STORE/.generations/ENV/uses/             the uses: one link for each process of `conda run`
#include "base/fields.hpp"
#include "base/result.hpp"
#include "sys/fs/entry.hpp"
#include "tree/pack.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

inline constexpr unsigned k_last_generation = 9999;
/// Limits in bytes for files beside a generation, which any user who may write in the store may have written.
inline constexpr std::size_t k_largest_record = 4U << 20U, k_largest_note = 4096;

struct Package {
  std::string name, version, build;
  bool pip = false; ///< a distribution without a record of conda; `build` is empty
  friend bool operator==(const Package&, const Package&) = default;
};
template <FieldsOf<Package> P> auto fields(P& p) {
  return named("name", p.name, "version", p.version, "build", p.build, "pip", p.pip);
}

/// The directory that `conda share` has replaced by a link, and keeps.
struct Original {
  std::string path, kept;  ///< where it was, and where it is kept
  std::uint64_t inode = 0; ///< without the device, whose number differs between hosts and mounts
  std::string survey = {}; ///< fingerprint of what was copied; empty in records of earlier versions
  friend bool operator==(const Original&, const Original&) = default;
};
template <FieldsOf<Original> O> auto fields(O& o) {
  return named("path", o.path, "kept", o.kept, "inode", o.inode, "survey", o.survey);
}

/// Returns the name for a directory that is moved aside for a link: `NAME.sharefs-backup-YYYYMMDD-HHMMSS`, in UTC.
std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when);
/// Returns the newest backup of exactly `name` among the names in a directory; empty if there is none.
std::string newest_backup(const std::vector<std::string>& entries, std::string_view name);

struct Generation {
  unsigned number = 0;
  unsigned parent = 0;      ///< the generation from which it was made; 0: none
  std::int64_t created = 0; ///< seconds since 1970, by the clock of the host that made it
  std::string user, host;
  std::string command; ///< that made it: "sharefs conda share ...", "pip install x"
  std::string message; ///< of --message
  std::string prefix;  ///< the prefix that its files name
  std::string python;  ///< "3.11.9"; empty: none
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t own_bytes = 0;   ///< bytes of files that the parent does not have
  bool no_guard = false;         ///< the guard was refused or removed, so updates do not add it
  std::vector<Package> packages; ///< by name
  Original original;             ///< the directory that `conda share` copied
  friend bool operator==(const Generation&, const Generation&) = default;
};
template <FieldsOf<Generation> G> auto fields(G& g) {
  return named("number", g.number, "parent", g.parent, "created", g.created, "user", g.user, "host", g.host, "command",
               g.command, "message", g.message, "prefix", g.prefix, "python", g.python, "files", g.files, "bytes",
               g.bytes, "own_bytes", g.own_bytes, "no_guard", g.no_guard, "packages", g.packages, "original",
               g.original);
}

/// Returns the files, relative to the environment, that make other tools refuse to change it: for conda (CEP 22) and,
/// if the version of Python is known, for pip (PEP 668).
std::vector<tree::AddedFile> protection_marks(const std::string& name, const std::string& python);

/// Returns one JSON document.
std::string format_generation(const Generation& generation);
/// The text is not trusted, because any user who may write in the store may have written it. Errors: `failed`: it is no
/// record, or larger than k_largest_record; `unsupported`: a newer sharefs has written it.
Result<Generation> parse_generation(std::string_view json);

struct PackageChange {
  std::string name, before, after; ///< "1.26.4 py311_0"; empty: the package is not there
  friend bool operator==(const PackageChange&, const PackageChange&) = default;
};
template <FieldsOf<PackageChange> C> auto fields(C& c) {
  return named("name", c.name, "before", c.before, "after", c.after);
}
std::string text_of(const PackageChange& change); ///< "numpy: 1.26.4 0 -> 2.0.0 0"; "-" if the package is not there
/// Returns the changed packages by name.
std::vector<PackageChange> package_changes(const std::vector<Package>& before, const std::vector<Package>& after);
/// Returns "+2 -1 ~3" for the numbers of added, removed and changed packages; empty without changes.
std::string summary_of(const std::vector<PackageChange>& changes);

/// Parse "NAME-VERSION-BUILD.json" of conda-meta and "NAME-VERSION.dist-info" of site-packages; nullopt for other
/// names.
std::optional<Package> package_of_record(std::string_view file_name);
std::optional<Package> package_of_distribution(std::string_view directory_name);

std::string generation_name(unsigned number);                     ///< 3 -> "0003"
std::optional<unsigned> generation_number(std::string_view name); ///< "0003" -> 3; nullopt for another name
std::string generations_path(const std::string& store, const std::string& environment); ///< STORE/.generations/ENV
std::string generation_path(const std::string& store, const std::string& environment, unsigned number);
/// Returns the text of the link STORE/ENV. It is relative, so that it is right wherever the share is mounted.
std::string generation_link(const std::string& environment, unsigned number);
/// Returns the number in a name that belongs to a generation, even an unfinished or deleted one: it must not be used
/// again.
std::optional<unsigned> used_number(std::string_view name);
/// Returns the generation that the text of the link STORE/ENV names; nullopt for another link.
std::optional<unsigned> linked_generation(const std::string& environment, std::string_view link_text);
/// Returns the number in new-0004.XXXXXX and old-0001.XXXXXX; nullopt for another name.
std::optional<unsigned> unfinished_generation(std::string_view name);

/// A process of `conda run`, read from the name of its note, HOST.PID.START.NUMBER. All users of the environment may
/// write any name there, so only the owner of the note is certain.
struct Use {
  std::string host;
  int pid = 0;
  std::uint64_t start = 0; ///< field 22 of /proc/PID/stat, which a later process with this number does not share
  unsigned generation = 0;
  std::uint32_t uid = 0;  ///< owner of the note
  std::int64_t noted = 0; ///< time of the note, seconds since 1970, by the server's clock
  std::string user = {};  ///< the name of `uid`; empty until find_live_uses() has looked it up
  friend bool operator==(const Use&, const Use&) = default;
};
/// Returns the note that a process leaves beside its generation; use_name() returns the note's full name.
sys::Note use_note(const std::string& host, int pid, std::uint64_t start);
std::string use_name(const Use& use);
/// Parses the name of a note; nullopt for other names.
std::optional<Use> parse_use(std::string_view name);
/// A note about a process that this host cannot see counts for this number of days, since nobody deletes the note of a
/// host that is gone, or of a process that never existed.
inline constexpr int k_note_days = 60;
/// True if the note still counts. A note from the future does not; one day is allowed for clocks that differ.
bool is_fresh(const Use& use, std::int64_t now);
/// Returns "process 12 on node1, by a note of alice".
std::string text_of(const Use& use);
/// Returns the mode of uses/: every user of the environment may leave a note, and nobody can delete the note of another
/// user. `store_mode` is as for generation_mode().
std::uint32_t uses_mode(std::uint32_t store_mode);

} // namespace sharefs::conda

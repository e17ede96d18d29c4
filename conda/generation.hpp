#pragma once
// What is written down about the generations of a shared environment, and where. Pure.
//   STORE/ENV -> .generations/ENV/0003       what users see: the stable path
//   STORE/.generations/ENV/0003/             the environment; nothing in it changes once it has this name
//   STORE/.generations/ENV/0003.json         its record
//   STORE/.generations/ENV/0003.pinned       a person has made it: `conda gc` keeps 0003
//   STORE/.generations/ENV/new-0004.XXXXXX/  being made, or left by one that was killed
//   STORE/.generations/ENV/old-0001.XXXXXX/  being deleted
//   STORE/.generations/ENV/lock              who changes the environment (sys::Lease)
//   STORE/.generations/ENV/uses/             who runs it: one link for each process of `conda run`
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
/// Bytes of what lies beside a generation, which whoever may write in the store may have written.
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
  std::string path, kept;  ///< where it was, and where it is
  std::uint64_t inode = 0; ///< the device has another number wherever and whenever it is mounted
  friend bool operator==(const Original&, const Original&) = default;
};
template <FieldsOf<Original> O> auto fields(O& o) {
  return named("path", o.path, "kept", o.kept, "inode", o.inode);
}

/// The names that sharefs gives to what it moves aside for a link: `NAME.sharefs-backup-YYYYMMDD-HHMMSS`, in UTC.
std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when);
/// The newest backup of exactly `name` among the names in a directory; empty if there is none.
std::string newest_backup(const std::vector<std::string>& entries, std::string_view name);

struct Generation {
  unsigned number = 0;
  unsigned parent = 0;      ///< that it was made from; 0: none
  std::int64_t created = 0; ///< seconds since 1970, of the host that made it
  std::string user, host;
  std::string command; ///< what made it: "sharefs conda share ...", "pip install x"
  std::string message; ///< of --message
  std::string prefix;  ///< that its files name
  std::string python;  ///< "3.11.9"; empty: none
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t own_bytes = 0;   ///< that the parent does not have
  bool no_guard = false;         ///< somebody does not want the guard in it: updates do not add it either
  std::vector<Package> packages; ///< by name
  Original original;             ///< that it was copied from by `conda share`
  friend bool operator==(const Generation&, const Generation&) = default;
};
template <FieldsOf<Generation> G> auto fields(G& g) {
  return named("number", g.number, "parent", g.parent, "created", g.created, "user", g.user, "host", g.host, "command",
               g.command, "message", g.message, "prefix", g.prefix, "python", g.python, "files", g.files, "bytes",
               g.bytes, "own_bytes", g.own_bytes, "no_guard", g.no_guard, "packages", g.packages, "original",
               g.original);
}

/// Files that tell other tools to leave the environment alone, relative to it: for conda (CEP 22) and, if the version
/// of Python is known, for pip (PEP 668).
std::vector<tree::AddedFile> protection_marks(const std::string& name, const std::string& python);

/// JSON, one document.
std::string format_generation(const Generation& generation);
/// `failed`: no record of ours, or more than k_largest_record. Whoever may write in the store may have written
/// anything.
Result<Generation> parse_generation(std::string_view json);

struct PackageChange {
  std::string name, before, after; ///< "1.26.4 py311_0"; empty: not there
  friend bool operator==(const PackageChange&, const PackageChange&) = default;
};
template <FieldsOf<PackageChange> C> auto fields(C& c) {
  return named("name", c.name, "before", c.before, "after", c.after);
}
std::string text_of(const PackageChange& change); ///< "numpy: 1.26.4 0 -> 2.0.0 0"; "-": not there
/// By name; what is the same is left out.
std::vector<PackageChange> package_changes(const std::vector<Package>& before, const std::vector<Package>& after);
/// "+2 -1 ~3": added, removed, changed; empty: nothing.
std::string summary_of(const std::vector<PackageChange>& changes);

/// "NAME-VERSION-BUILD.json" of conda-meta, "NAME-VERSION.dist-info" of site-packages; nullopt: another name.
std::optional<Package> package_of_record(std::string_view file_name);
std::optional<Package> package_of_distribution(std::string_view directory_name);

std::string generation_name(unsigned number);                     ///< 3 -> "0003"
std::optional<unsigned> generation_number(std::string_view name); ///< "0003" -> 3; nullopt: another name
std::string generations_path(const std::string& store, const std::string& environment); ///< STORE/.generations/ENV
std::string generation_path(const std::string& store, const std::string& environment, unsigned number);
/// The text of the link STORE/ENV: relative, so that it is right wherever the share is mounted.
std::string generation_link(const std::string& environment, unsigned number);
/// Of every name there that is a generation's, whole, unfinished or left over: it is not to be used again.
std::optional<unsigned> used_number(std::string_view name);
/// The generation that the text of STORE/ENV names; nullopt: it is another link.
std::optional<unsigned> linked_generation(const std::string& environment, std::string_view link_text);
/// new-0004.XXXXXX and old-0001.XXXXXX: the number; nullopt: another name.
std::optional<unsigned> unfinished_generation(std::string_view name);

/// A process of `conda run`, by the name of its note, HOST.PID.START.NUMBER. Everybody who may use the environment may
/// have written any name there: what nobody can choose is whose the note is.
struct Use {
  std::string host;
  int pid = 0;
  std::uint64_t start = 0; ///< field 22 of /proc/PID/stat: tells it from a later process with this number
  unsigned generation = 0;
  std::uint32_t uid = 0;  ///< whose note it is
  std::int64_t noted = 0; ///< when, seconds since 1970, by the server's clock
  std::string user = {};  ///< the name of `uid`, where somebody has asked for it
  friend bool operator==(const Use&, const Use&) = default;
};
/// What a process leaves beside its generation, and the name of it there.
sys::Note use_note(const std::string& host, int pid, std::uint64_t start);
std::string use_name(const Use& use);
std::optional<Use> parse_use(std::string_view name);
/// Of a note about a process that this host cannot see. Nobody takes away the note of a host that is gone, or of a
/// process that never was: it counts for this many days. `conda run` never makes one in the future; a day is for
/// clocks.
inline constexpr int k_note_days = 60;
bool is_fresh(const Use& use, std::int64_t now);
/// "process 12 on node1, by a note of alice"
std::string text_of(const Use& use);
/// Of uses/: who may use the environment may note that, and nobody takes away the note of another. `store_mode` as for
/// generation_mode().
std::uint32_t uses_mode(std::uint32_t store_mode);

} // namespace sharefs::conda

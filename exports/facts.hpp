#pragma once
// What diagnose() and the plan may know of the host, as values. What was not asked for is absent, and then not judged.
#include "exports/client.hpp"
#include "exports/parse.hpp"
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sharefs::exports {

struct NameFact {
  std::vector<std::string> addresses; ///< none: it does not resolve
  std::string canonical;              ///< what exportfs writes to etab
  friend bool operator==(const NameFact&, const NameFact&) = default;
};

using Names = std::map<std::string, NameFact, std::less<>>; ///< of clients that are host names

struct HostFacts {
  std::map<std::string, sys::Entry, std::less<>> directories;  ///< by the directory as written
  std::map<std::string, std::string, std::less<>> replaceable; ///< directories that others than root could replace: why
  sys::MountTable mounts;
  Names names;
  std::string hosts;     ///< text of /etc/hosts
  std::string waits_for; ///< a path for which exportfs would wait without end; "": none is known
};

/// The directory as exportfs writes it once it is there: resolved if that is known, else without superfluous slashes.
std::string real_path(std::string_view directory, const HostFacts& facts);
/// As exportfs writes it now: what it cannot resolve stays as it is written.
std::string etab_path(std::string_view directory, const HostFacts& facts);

/// Positions in a list of exports by directory (as in etab) and client.
class ExportIndex {
 public:
  ExportIndex(const HostFacts& facts, const std::vector<Export>& list);
  /// Of the first one that may be the same to exportfs.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view directory, std::string_view client) const;
  [[nodiscard]] bool has(const Export& entry) const { return find(entry.directory, entry.client).has_value(); }

 private:
  /// Two clients may be the same to exportfs if they share a key: the name without case, the canonical name, an
  /// address.
  [[nodiscard]] std::vector<std::string> keys(std::string_view client) const;

  std::map<std::string, std::vector<std::string>, std::less<>> m_keys; ///< by name and canonical name, without case
  std::unordered_map<std::string, std::size_t> m_positions;
};

/// /var/lib/nfs/etab: what is exported to whom. Lines that cannot be read are passed over; an option of a newer
/// nfs-utils does not hide its line.
std::vector<Export> parse_etab(std::string_view text);
std::optional<Export> parse_etab_line(std::string_view line, const Origin& origin);
/// Does mountd, which takes a line of etab by the words of exports(5), read `entry` in it?
bool is_readable(std::string_view line, const Export& entry);

/// An entry that exportfs reads but does not export: a duplicate, or a client that it drops.
struct Dropped {
  std::size_t file = 0; ///< its number
  Export entry;
  std::optional<std::size_t> winner; ///< of a duplicate: the position of the entry that won
};
/// What exportfs says when it gives up a file. (The line that it names is not that of the file: it does not count those
/// that end in a comment.)
struct Complaint {
  std::size_t file = 0;             ///< its number among the files
  std::string text;                 ///< "unknown keyword \"rx\""
  std::string option;               ///< "rx"; "": it names none
  std::optional<std::size_t> entry; ///< position in the file of the first entry that has the option
};
/// What exportfs makes of exports files (exports/ask.hpp).
struct ExpectedEtab {
  /// As etab has them, with the places where they were written, and in that order. Those whose place was not found
  /// stand last, with their places in etab.
  std::vector<Export> entries;
  std::vector<Dropped> dropped;
  /// By file and by its exports: the entry; nullopt: it has none, or is a duplicate.
  std::vector<std::vector<std::optional<std::size_t>>> positions;
  std::vector<Complaint> complaints;
  std::vector<std::size_t> unreadable; ///< positions of entries that mountd cannot read in etab as they stand there
  bool broken = false;                 ///< etab has lines that are no entries: a line end in a name or value makes them
  std::string not_asked;               ///< why exportfs was not asked: this is what the text says; "": it was
  std::string cure;                    ///< where it crashes, or waits without end, and `exportfs -r` would, too
};

} // namespace sharefs::exports

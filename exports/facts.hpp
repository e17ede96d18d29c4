#pragma once
// The facts about the host that diagnose() and the plan use, as values. A fact that was not probed is absent, and
// nothing is concluded from its absence.
#include "exports/client.hpp"
#include "exports/parse.hpp"
#include "sys/configured_mounts.hpp"
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"

#include <map>
#include <set>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sharefs::exports {

struct NameFact {
  std::vector<std::string> addresses; ///< empty: the name does not resolve
  std::string canonical;              ///< the name that exportfs writes to etab
  friend bool operator==(const NameFact&, const NameFact&) = default;
};

using Names = std::map<std::string, NameFact, std::less<>>; ///< facts by the host name of a client

struct HostFacts {
  std::map<std::string, sys::Entry, std::less<>> directories;  ///< by the directory as written
  std::map<std::string, std::string, std::less<>> replaceable; ///< directory that a user could replace -> how
  /// Directory -> the line of fstab, or the unit, for the file system on which it should lie and which is not mounted.
  std::map<std::string, sys::ConfiguredMount, std::less<>> not_mounted;
  sys::MountTable mounts;
  Names names;
  std::string hosts;                  ///< text of /etc/hosts
  std::set<std::string> not_answered; ///< names of clients that were to be looked up, and gave no answer
  std::string waits_for;              ///< a path for which exportfs would wait forever; "": none is known
};

/// Returns the directory as exportfs writes it once the directory exists: resolved if the facts have that, else without
/// superfluous slashes.
std::string real_path(std::string_view directory, const HostFacts& facts);
/// Returns the directory as exportfs writes it now: a directory that it cannot resolve stays as it is written.
std::string etab_path(std::string_view directory, const HostFacts& facts);

/// Finds positions in a list of exports by directory and client, both as in etab. The name service may have changed the
/// name of a host, so it is found by its other names and its addresses, too.
class ExportIndex {
 public:
  ExportIndex(const HostFacts& facts, const std::vector<Export>& list);
  /// Returns the position of the first entry.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view directory, std::string_view client) const;
  [[nodiscard]] bool has(const Export& entry) const { return find(entry.directory, entry.client).has_value(); }

 private:
  [[nodiscard]] std::string key(std::string_view directory, std::string_view client) const;

  std::map<std::string, std::string> m_hosts; ///< by name and by address: the canonical name, in lower case
  std::unordered_map<std::string, std::size_t> m_positions;
};

/// Parses /var/lib/nfs/etab, the exports that are in force. Lines that cannot be parsed are skipped; a line with an
/// option of a newer nfs-utils is kept.
std::vector<Export> parse_etab(std::string_view text);
/// Parses one line of etab; nullopt if it is no entry.
std::optional<Export> parse_etab_line(std::string_view line, const Origin& origin);
/// True if mountd, which parses a line of etab like a line of exports(5), reads `entry` in it.
bool is_readable(std::string_view line, const Export& entry);

/// What exportfs makes of an entry of a file.
struct Outcome {
  std::optional<std::size_t> position; ///< in ExpectedEtab::entries; nullopt: exportfs does not read it, or drops it
  bool duplicate = false;              ///< it is ignored, since the entry at `position` came before it

  [[nodiscard]] bool exported() const { return position && !duplicate; }
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
/// A message with which exportfs stops reading a file whose text looks right. (The line number in the message is wrong,
/// because exportfs does not count lines that end in a comment.)
struct Complaint {
  std::size_t file = 0; ///< its number among the files
  std::string text;     ///< "syntax error: uid/gid -1 not permitted"
};
/// The etab that exportfs makes of exports files (exports/ask.hpp).
struct ExpectedEtab {
  /// The entries of etab, each with its place in the files, in the order of the files. Entries whose place was not
  /// found stand last, with their places in etab.
  std::vector<Export> entries;
  std::vector<std::vector<Outcome>> outcomes; ///< for each file, of each of its exports
  std::vector<Complaint> complaints;
  std::vector<std::size_t> unreadable; ///< positions of entries that mountd cannot read in etab
  bool broken = false;                 ///< etab has lines that are no entries, because of a line end in a name or value
  std::string not_asked;               ///< why exportfs was not asked, so that only the text counts; "": it was asked
  std::string cure;                    ///< set if exportfs crashes or waits forever, as `exportfs -r` would
};

} // namespace sharefs::exports

#pragma once
// What diagnose() and the plan may know of the host, as values. What was not asked for is absent, and then not judged.
#include "exports/export.hpp"
#include "exports/parse.hpp"
#include "exports/settings.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

struct DirectoryFact {
  enum class Kind { missing, directory, other, unknown /* no answer in time */ };
  Kind kind = Kind::unknown;
  std::string real_path;  ///< through links: what exportfs writes to etab
  bool shared = false;    ///< on a file system that other hosts share: touched only in a child
  std::string fs_type;    ///< of the file system it lies on, or would lie on
  std::string fs_options; ///< superblock options of that
  friend bool operator==(const DirectoryFact&, const DirectoryFact&) = default;
};

struct NameFact {
  std::vector<std::string> addresses; ///< none: it does not resolve
  std::string canonical;              ///< what exportfs writes to etab
  friend bool operator==(const NameFact&, const NameFact&) = default;
};

struct HostFacts {
  std::map<std::string, DirectoryFact, std::less<>> directories; ///< by the directory as written
  std::map<std::string, NameFact, std::less<>> names;            ///< clients that are host names
  std::string nfs_utils_version;                                 ///< "2.6.2"; empty: not known
  std::set<std::string, std::less<>> missing_options;            ///< option names that the installed exportfs lacks
};

/// One line of /var/lib/nfs/etab: what is exported to whom.
struct EtabEntry {
  std::string directory; ///< resolved
  std::string client;    ///< canonical name; "*" for everyone
  Settings settings;
  std::vector<std::string> options; ///< as written, to export it again
  Origin origin;                    ///< in etab, or the line of the exports file that gives it
  friend bool operator==(const EtabEntry&, const EtabEntry&) = default;
};
/// Lines that cannot be read are passed over; an option of a newer nfs-utils does not hide its line.
std::vector<EtabEntry> parse_etab(std::string_view text);

/// An entry that exportfs reads but does not export, and why.
struct Dropped {
  EtabEntry entry;
  enum class Why { duplicate, unresolved, bad_network, stopped /* exportfs gave up the file */ } why = Why::duplicate;
  Origin by; ///< duplicate: the entry that won
};
struct ExpectedEtab {
  std::vector<EtabEntry> entries;
  std::vector<Dropped> dropped;
};
/// What `exportfs -ra` makes of these files, in the order in which it reads them: the first entry for a directory and
/// client wins. An option that the installed exportfs lacks ends its file. A name that is not in `facts.names` is taken
/// to resolve.
ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts);

/// Do two names of clients stand for the same export entry? (case-insensitive; host names by what they resolve to)
bool same_client(std::string_view a, std::string_view b, const HostFacts& facts);
/// Are the hosts that `special` means among those of `general`, as far as can be told? Everyone covers all; networks by
/// address, names by what they resolve to. Wildcards and netgroups cover nothing but themselves.
bool covers(std::string_view general, std::string_view special, const HostFacts& facts);
/// The directory as exportfs writes it: resolved if that is known, else without superfluous slashes.
std::string real_path(std::string_view directory, const HostFacts& facts);

} // namespace sharefs::exports

#pragma once
// What diagnose() and the plan may know of the host, as values. What was not asked for is absent, and then not judged.
#include "exports/client.hpp"
#include "exports/parse.hpp"
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"

#include <map>
#include <optional>
#include <set>
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
  std::map<std::string, sys::Entry, std::less<>> directories; ///< by the directory as written
  std::map<std::string, std::string, std::less<>>
      exchangeable;                                      ///< directories that others than root could exchange: why
  std::map<std::string, bool, std::less<>> mount_points; ///< paths of `mountpoint`: is something mounted there?
  sys::MountTable mounts;
  Names names;
  std::string nfs_utils_version;                      ///< "2.6.2"; empty: not known
  std::set<std::string, std::less<>> missing_options; ///< option names that the installed exportfs lacks
};

/// The directory as exportfs writes it once it is there: resolved if that is known, else without superfluous slashes.
std::string real_path(std::string_view directory, const HostFacts& facts);
/// As exportfs writes it now: what it cannot resolve stays as it is written.
std::string etab_path(std::string_view directory, const HostFacts& facts);

/// Whom names of clients stand for, by what was looked up.
class Clients {
 public:
  explicit Clients(const HostFacts& facts);
  /// Two clients are the same to exportfs if they share a key: the name without case, the canonical name, an address.
  [[nodiscard]] std::vector<std::string> keys(std::string_view client) const;
  /// The addresses of a host, or a network; none for all others.
  [[nodiscard]] std::vector<Network> networks(std::string_view client) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> m_keys; ///< by name and canonical name, without case
};

/// Positions in a list of exports by directory (as in etab) and client.
class ExportIndex {
 public:
  explicit ExportIndex(const HostFacts& facts, const std::vector<Export>& list = {});
  /// Adds it, unless one that is the same to exportfs is there: then that one's position.
  std::optional<std::size_t> add(const Export& entry, std::size_t position);
  /// Of the one that is the same to exportfs.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view directory, std::string_view client) const;
  [[nodiscard]] bool has(const Export& entry) const { return find(entry.directory, entry.client).has_value(); }

 private:
  [[nodiscard]] std::optional<std::size_t> find_any(std::string_view directory,
                                                    const std::vector<std::string>& keys) const;

  Clients m_clients;
  std::unordered_map<std::string, std::size_t> m_positions;
};

/// /var/lib/nfs/etab: what is exported to whom. Lines that cannot be read are passed over; an option of a newer
/// nfs-utils does not hide its line.
std::vector<Export> parse_etab(std::string_view text);

/// An entry that exportfs reads but does not export: a duplicate, a client that it drops, or one behind the option at
/// which exportfs gives up the file.
struct Dropped {
  Export entry;
  std::optional<std::size_t> winner; ///< of a duplicate: the position of the entry that won
};
/// A host that exportfs takes for one that it knows already, by an address that both have: its entries are given to
/// all addresses of that one, and to no other. Or one whose canonical name, which etab has, has other addresses.
struct Mistaken {
  Export entry;                   ///< as it is written
  Origin known;                   ///< where that host stands first
  std::string known_as;           ///< its name there
  std::string name;               ///< its name in etab
  std::vector<std::string> gains; ///< addresses that the entry does not name
  std::vector<std::string> loses; ///< addresses that it names
};
struct ExpectedEtab {
  std::vector<Export> entries; ///< with the places where they were written; directory and client as etab has them
  std::vector<Dropped> dropped;
  std::vector<Mistaken> mistaken;
  /// By file and export: its entry; nullopt for a dropped one.
  std::vector<std::vector<std::optional<std::size_t>>> positions;
  std::set<std::string, std::less<>> stopped; ///< files that an option ends which the installed exportfs lacks
};
/// What `exportfs -ra` makes of these files, in the order in which it reads them: the first entry for a directory and
/// client wins, and a host with a known address is the known one. An option that the installed exportfs lacks ends its
/// file. A name that is not in `facts.names` is taken to resolve.
ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts);

} // namespace sharefs::exports

#pragma once
// Which clients have something of this server mounted, as far as a server knows: it is told where exports are
// withdrawn.
#include "base/diagnosis.hpp"
#include "exports/facts.hpp"
#include "sys/system.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace sharefs::exports {

/// A client of NFS version 4 (/proc/fs/nfsd/clients). What it has mounted is not known, what it has open is.
struct Version4Client {
  std::string address;
  std::string version;                     ///< "4.2"
  std::map<std::string, std::size_t> open; ///< files by file system: "fe:10"
  friend bool operator==(const Version4Client&, const Version4Client&) = default;
};
/// A line of /var/lib/nfs/rmtab, which rpc.mountd keeps for version 3; known to be out of date (mountd(8)).
struct RmtabLine {
  std::string host, directory;
  friend bool operator==(const RmtabLine&, const RmtabLine&) = default;
};
struct MountedBy {
  std::vector<Version4Client> version4;
  std::vector<RmtabLine> rmtab;
  std::string unknown; ///< why there may be more of version 4; empty: these are all
  friend bool operator==(const MountedBy&, const MountedBy&) = default;
};

/// Never fails and never hangs: each file is asked for with a deadline, and only so much of it and so many are read.
MountedBy read_mounted(sys::System& system);

/// Of the files `info` and `states` of one client.
Version4Client parse_version4(std::string_view info, std::string_view states);
std::vector<RmtabLine> parse_rmtab(std::string_view text);

/// The name that a client of version 4 gave itself (by its host's name), and where it calls from.
struct ClientName {
  std::string name, address;
  friend bool operator==(const ClientName&, const ClientName&) = default;
};
/// As read_mounted(), but without what is open. Two hosts with one name throw each other out, so only one of them may
/// be seen at a time.
std::vector<ClientName> read_client_names(sys::System& system);
/// SF247 for each name that has come from several addresses.
Diagnoses diagnose_client_names(const std::vector<ClientName>& seen);

/// What is exported now (`etab`) and no more when `expected` is.
std::vector<Export> dropped_by(const ExpectedEtab& expected, const std::vector<Export>& etab, const HostFacts& facts);
/// For each directory of `withdrawn` the clients among those that lose it, in sentences.
std::vector<std::string> notes_of_mounted(const std::vector<Export>& withdrawn, const MountedBy& mounted,
                                          const HostFacts& facts);

} // namespace sharefs::exports

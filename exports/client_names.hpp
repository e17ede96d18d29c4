#pragma once
// The names that clients of NFS version 4 gave themselves, as nfsd knows them (/proc/fs/nfsd/clients).
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

/// The name that a client gave itself (by its host's name), and where it calls from.
struct ClientName {
  std::string name, address;
  friend bool operator==(const ClientName&, const ClientName&) = default;
};
/// Two hosts with one name throw each other out, so only one of them may be seen at a time. Each file is asked for with
/// a deadline, and only so much of it and so many are read.
std::vector<ClientName> read_client_names(sys::System& system);
/// SF247 for each name that has come from several addresses.
Diagnoses diagnose_client_names(const std::vector<ClientName>& seen);

} // namespace sharefs::exports

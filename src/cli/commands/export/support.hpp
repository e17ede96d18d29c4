#pragma once
// Translates sharefs.yaml and the command line for the exports room: which exports belong to this host, and which were
// named.
#include "cli/execute.hpp"
#include "config/config.hpp"
#include "exports/export_flow.hpp"
#include "exports/host.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

/// Returns `access:` with the id of its group on this host. An error has the place in the file.
Result<plan::DirectoryAccess> directory_access(sys::System& system, const config::Access& access, const Origin& origin);

/// Returns whether a name resolves to an address of this host; nullopt: nobody can resolve it in time. An address is no
/// name.
std::optional<bool> leads_here(sys::System& system, const sys::Identity& identity, const std::string& name,
                               std::chrono::milliseconds deadline);

/// The servers of sharefs.yaml that are this host: by their address, their name, or an address that the name resolves
/// to.
struct OwnServers {
  std::vector<const config::Server*> servers;
  std::string address;                       ///< of this host, as clients reach it; used to verify over the network
  [[nodiscard]] std::size_t exports() const; ///< the number of their exports
};
/// Finds them; an empty list is not an error.
OwnServers find_own_servers(sys::System& system, const config::Config& config);
/// Returns an error `config` that names the addresses of this host and those of the file.
Error not_a_server(sys::System& system, const config::Config& config);

/// Makes the request for the exports that the command line names (PATH, SERVER:PATH or the last part of PATH, or
/// --all). Errors: `usage` if neither or both are given or a word is ambiguous, `not_found` with a "did you mean" hint.
/// `files` are the exports files of the host; --remove can also name what sharefs exports there.
Result<exports::Request> export_request(sys::System& system, const config::Config& config, const Arguments& arguments,
                                        const OwnServers& own, const exports::HostFiles& files);
/// Reports the findings about the exports that `executed` was to put into force. If they are not as wanted, the whole
/// change is undone, and an error is returned.
Result<void> conclude_exports(Context& context, const Executed& executed, const exports::Proposed& proposed,
                              const Diagnoses& found);

/// Returns [{directory, client, kind, options, origin}].
Json to_json(const std::vector<exports::Export>& list);

} // namespace sharefs::cli

#pragma once
// From sharefs.yaml and the command line to the exports room: which exports are this host's, and which were named.
#include "cli/execute.hpp"
#include "config/config.hpp"
#include "exports/export_flow.hpp"
#include "exports/host.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sharefs::cli {

/// `access:` with the number of its group on this host. Error with the place.
Result<plan::DirectoryAccess> directory_access(sys::System& system, const config::Access& access, const Origin& origin);

/// The servers of sharefs.yaml that are this host: by address, by name, or by what the address resolves to.
struct OwnServers {
  std::vector<const config::Server*> servers;
  std::string address;                       ///< of this host, as clients reach it; for the check over the network
  [[nodiscard]] std::size_t exports() const; ///< how many they have
};
/// None is an empty list, no error.
OwnServers find_own_servers(sys::System& system, const config::Config& config);
/// `config` error that names the addresses of this host and those of the file.
Error not_a_server(sys::System& system, const config::Config& config);

/// What is to be done with the exports that the words of the command line mean (PATH, SERVER:PATH or the last part of
/// PATH, or --all). `usage` if neither or both are given or a word is ambiguous, `not_found` with a "did you mean"
/// hint. `files`: those of the host; --remove can name what sharefs exports there, too.
Result<exports::Task> export_task(sys::System& system, const config::Config& config, const Arguments& arguments,
                                  const OwnServers& own, const exports::HostFiles& files);
/// What was found of the exports that `executed` was to put into force. Those that are not as wanted are taken back,
/// with all else of that change, and are an error.
Result<void> conclude_exports(Context& context, const Executed& executed, const exports::Proposed& look,
                              const Diagnoses& found);

/// [{directory, client, kind, options, origin}]
nlohmann::ordered_json to_json(const std::vector<exports::Export>& list);

} // namespace sharefs::cli

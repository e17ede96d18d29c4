#pragma once
// Reads this host for `export` and `export check`. Nothing is changed, and every question has a deadline.
#include "base/result.hpp"
#include "exports/facts.hpp"
#include "plan/action.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::exports {

/// The exports files of the host.
struct HostFiles {
  std::vector<ExportsFile> files; ///< in the order in which exportfs reads them
  Diagnoses diagnoses;            ///< of paths that exportfs does not read as a file (SF126)
  std::optional<std::string> own; ///< the text of k_own_file; nullopt: there is no such file
  std::string waits_for;          ///< as HostFacts::waits_for
  bool directory = false;         ///< /etc/exports.d exists
};
/// Reads /etc/exports and the files in /etc/exports.d. A file that cannot be read is a diagnosis; `timeout`: the
/// directory does not answer.
Result<HostFiles> read_host_files(const sys::Files& files);
/// Returns the directories of the entries in k_own_file.
std::vector<std::string> own_directories(const HostFiles& host);

/// Returns the names that exportfs reads in /etc/exports.d, in its order (versionsort).
std::vector<std::string> exports_in_order(std::vector<std::string> names);

/// Reads /var/lib/nfs/etab; a missing file counts as an empty one.
Result<std::vector<Export>> read_etab(const sys::Files& files);

/// Probes the directories of the files and `more_directories`, the clients that are host names, and /etc/hosts. Names
/// that are not in `known` are resolved within 10 s for all together; a name without an answer is left out. Without
/// `with_names` only the directories are probed.
Result<HostFacts> probe_facts(sys::System& system, const std::vector<ExportsFile>& files,
                              const std::vector<std::string>& more_directories = {}, const Names& known = {},
                              bool with_names = true);

/// Returns the facts about the names in the text of a hosts(5) file, by names in lower case. A line without a valid
/// address has none, as for the resolver.
Names facts_in_hosts(std::string_view hosts);
/// Returns the addresses and the canonical name by `getent ahosts`; nullopt without an answer within the deadline.
std::optional<NameFact> resolve_name(sys::System& system, const std::string& name, std::chrono::milliseconds deadline);
/// Returns the number of the group. Errors: `not_found` with the name; `timeout` after 5 s.
Result<std::uint32_t> resolve_group(sys::System& system, const std::string& name);

} // namespace sharefs::exports

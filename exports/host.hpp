#pragma once
// probe(): what is on this host, for export and export check. Reading only; every question has a deadline.
#include "base/result.hpp"
#include "exports/facts.hpp"
#include "plan/action.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::exports {

/// The exports files of the host.
struct HostFiles {
  std::vector<ExportsFile> files; ///< in the order in which exportfs reads them
  Diagnoses diagnoses;            ///< of what exportfs does not read as a file (SF126)
  std::optional<std::string> own; ///< text of k_own_file
  std::string waits_for;          ///< as HostFacts::waits_for
  bool directory = false;         ///< /etc/exports.d exists
};
Result<HostFiles> read_host_files(const sys::Files& files);
/// Directories of the entries of own file.
std::vector<std::string> own_directories(const HostFiles& host);

/// Which names exportfs reads in /etc/exports.d, in its order (versionsort).
std::vector<std::string> exports_in_order(std::vector<std::string> names);

/// /var/lib/nfs/etab; none is empty.
Result<std::vector<Export>> read_etab(const sys::Files& files);

/// Directories of the files and of `more`, clients that are names, and /etc/hosts.
/// Names that are not in `known` are looked up for 10 s in all; one without an answer is not judged.
Result<HostFacts> probe_facts(sys::System& system, const std::vector<ExportsFile>& files,
                              const std::vector<std::string>& more_directories = {}, const Names& known = {});

/// The directories of the files and `more` only.
Result<HostFacts> probe_directories(sys::System& system, const std::vector<ExportsFile>& files,
                                    const std::vector<std::string>& more = {});

/// Addresses and canonical name by `getent ahosts`; nullopt: no answer within the deadline.
std::optional<NameFact> resolve_name(sys::System& system, const std::string& name, std::chrono::milliseconds deadline);
/// `not_found` with the name.
Result<std::uint32_t> resolve_group(sys::System& system, const std::string& name);

} // namespace sharefs::exports

#include "exports/plan_export.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

/// Entries of the own file that this request does not change are only a warning, so that they do not make it fail.
Diagnosis report(std::string code, const Origin& origin, std::string message, std::string hint) {
  return at(origin.file == k_own_file ? Severity::warning : Severity::error, std::move(code), origin,
            std::move(message), std::move(hint));
}

Diagnosis not_exported(const Export& entry) {
  const bool named = kind_of(entry.client) == ClientKind::host && canonical_address(entry.client).empty();
  return report("SF130", entry.origin,
                fmt::format("{} is not exported to `{}`: exportfs did not take it", entry.directory, entry.client),
                named ? fmt::format("try `getent hosts {}`: it drops names that do not resolve", entry.client)
                      : "run `exportfs -ra` and read what it says");
}

} // namespace

Diagnoses verify_etab(const Composed& composed, const HostFacts& facts, const std::vector<Export>& etab) {
  Diagnoses diagnoses;
  std::set<Origin> own;
  const ExportIndex there(facts, etab);
  for (const auto& entry : composed.exports)
    own.insert(entry.origin);
  for (std::size_t file = 0; file < composed.files.size(); ++file)
    for (std::size_t i = 0; i < composed.files[file].exports.size(); ++i)
      if (const auto& entry = composed.files[file].exports[i];
          own.contains(entry.origin) && !composed.expected.outcomes[file][i].position)
        diagnoses.push_back(not_exported(entry));
  for (const auto& entry : composed.expected.entries) {
    const auto found = there.find(entry.directory, entry.client);
    const bool is_own = own.contains(entry.origin);
    if (!found && is_own)
      diagnoses.push_back(not_exported(entry));
    else if (!found)
      diagnoses.push_back({Severity::warning, "SF133", entry.directory,
                           fmt::format("{} is not exported to `{}`, though {} has it", entry.directory, entry.client,
                                       entry.origin.text()),
                           "`exportfs -ra` puts all files into force; `sharefs export check` says what it drops", ""});
    const auto differs = found ? differences(entry.settings, etab[*found].settings) : std::vector<std::string>();
    if (differs.empty())
      continue;
    auto message = fmt::format("{} is exported to `{}` with {}", entry.directory, entry.client, join(differs, ", "));
    if (is_own)
      diagnoses.push_back(report("SF131", entry.origin, std::move(message), "run `sharefs export check`"));
    else
      diagnoses.push_back({Severity::warning, "SF133", entry.directory,
                           fmt::format("{} ({})", message, entry.origin.text()),
                           "run `sharefs export check` for the files of others", ""});
  }
  for (const auto& entry : composed.retired)
    if (there.has(entry))
      diagnoses.push_back({Severity::error, "SF134", entry.directory,
                           fmt::format("{} is still exported to `{}`", entry.directory, entry.client),
                           "run `exportfs -ra` and read what it says", ""});
  return diagnoses;
}

Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe) {
  if (probe.result_of(sys::ProbeStage::exports).outcome != sys::StageOutcome::ok) {
    const auto* const failing = probe.failing();
    if (failing == nullptr)
      return {};
    return {{Severity::error, "SF132", probe.host,
             fmt::format("exported, but the server does not answer over the network: {}: {}", to_string(failing->stage),
                         failing->detail),
             fmt::format("run `sharefs probe {}`", probe.host), ""}};
  }
  // Only directories are compared: mountd's list leaves out clients that another client of the directory covers.
  std::set<std::string> directories;
  for (const auto& listing : probe.exports)
    directories.insert(listing.directory);
  Diagnoses diagnoses;
  for (const auto& entry : composed.exports)
    if (directories.insert(real_path(entry.directory, facts)).second) // one report for all clients
      diagnoses.push_back(
          report("SF132", entry.line,
                 fmt::format("{} is not in the list that the server gives over the network", entry.directory),
                 fmt::format("run `sharefs probe {}`", probe.host)));
  return diagnoses;
}

} // namespace sharefs::exports

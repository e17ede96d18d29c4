#include "exports/verify.hpp"

#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

const EtabEntry* find_entry(const std::vector<EtabEntry>& etab, std::string_view directory, std::string_view client,
                            const HostFacts& facts) {
  const auto found = std::find_if(etab.begin(), etab.end(), [&](const EtabEntry& entry) {
    return entry.directory == directory && same_client(entry.client, client, facts);
  });
  return found == etab.end() ? nullptr : &*found;
}

/// Entries of own file that this request does not touch are told, but do not make it fail.
Diagnosis told(std::string code, const Origin& origin, std::string message, std::string hint) {
  const auto severity = origin.file == k_own_file ? Severity::warning : Severity::error;
  return {severity, std::move(code), origin.text(), std::move(message), std::move(hint), ""};
}

Diagnosis not_exported(const Export& line, const Client& client, const HostFacts& facts) {
  const auto name = facts.names.find(client.name);
  const bool unresolved = name != facts.names.end() && name->second.addresses.empty();
  if (kind_of(client.name) == ClientKind::host && canonical_address(client.name).empty())
    return told("SF130", client.origin,
                fmt::format("{} is not exported to `{}`: {}", line.directory, client.name,
                            unresolved ? "the name does not resolve, and exportfs drops it silently"
                                       : "exportfs dropped it, as it does with names that do not resolve"),
                fmt::format("try `getent hosts {}`; put the name into /etc/hosts, or write the address", client.name));
  return told("SF130", client.origin,
              fmt::format("{} is not exported to `{}`: exportfs did not take it", line.directory, client.name),
              "run `exportfs -ra` and read what it says");
}

/// Another file that names the same directory and client, and is read first.
std::string winner_of(const EtabEntry& entry, const ExpectedEtab& expected) {
  for (const auto& dropped : expected.dropped)
    if (dropped.entry.origin == entry.origin && dropped.entry.client == entry.client &&
        dropped.why == Dropped::Why::duplicate)
      return fmt::format(", because {} comes first", dropped.by.text());
  return "";
}

} // namespace

Diagnoses verify_etab(const Composed& composed, const Actual& actual, const std::vector<EtabEntry>& etab) {
  Diagnoses diagnoses;
  const auto expected = expected_etab(files_after(actual, composed), actual.facts);
  for (const auto& line : composed.exports)
    for (const auto& client : line.clients) {
      const auto wanted = settings_of(client.defaults, client.options);
      if (!wanted)
        continue; // diagnosed before anything was done
      const auto* const found = find_entry(etab, real_path(line.directory, actual.facts), client.name, actual.facts);
      if (found == nullptr) {
        diagnoses.push_back(not_exported(line, client, actual.facts));
        continue;
      }
      if (const auto differs = differences(*wanted, found->settings); !differs.empty())
        diagnoses.push_back(
            told("SF131", client.origin,
                 fmt::format("{} is exported to `{}` with {}{}", line.directory, client.name, join(differs, ", "),
                             winner_of({"", client.name, {}, {}, client.origin}, expected)),
                 "run `sharefs export check`"));
    }
  for (const auto& entry : composed.retired)
    if (find_entry(etab, entry.directory, entry.client, actual.facts) != nullptr)
      diagnoses.push_back({Severity::error, "SF134", entry.directory,
                           fmt::format("{} is still exported to `{}`", entry.directory, entry.client),
                           "run `exportfs -ra` and read what it says", ""});
  return diagnoses;
}

Diagnoses verify_foreign(const Composed& composed, const Actual& actual, const std::vector<EtabEntry>& etab) {
  Diagnoses diagnoses;
  const auto expected = expected_etab(files_after(actual, composed), actual.facts);
  for (const auto& before : actual.etab) {
    if (find_entry(composed.retired, before.directory, before.client, actual.facts) != nullptr)
      continue;
    const auto* const now = find_entry(etab, before.directory, before.client, actual.facts);
    if (now == nullptr) {
      diagnoses.push_back({Severity::warning, "SF133", before.directory,
                           fmt::format("{} was exported to `{}` before the reload and is not any more",
                                       before.directory, before.client),
                           "run `sharefs export check` for the files of others", ""});
      continue;
    }
    const auto* const wanted = find_entry(expected.entries, before.directory, before.client, actual.facts);
    if (wanted == nullptr && now->settings != before.settings)
      diagnoses.push_back({Severity::warning, "SF133", before.directory,
                           fmt::format("{} is exported to `{}` with {}, which it was not before", before.directory,
                                       before.client, join(differences(before.settings, now->settings), ", ")),
                           "", ""});
  }
  return diagnoses;
}

Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe) {
  const auto stage = std::find_if(probe.stages.begin(), probe.stages.end(), [](const sys::StageResult& result) {
    return result.stage == sys::ProbeStage::exports;
  });
  const bool listed = stage != probe.stages.end() && stage->outcome == sys::StageOutcome::ok;
  if (!listed) {
    const auto* const failing = probe.failing();
    if (failing == nullptr)
      return {};
    return {{Severity::error, "SF132", probe.host,
             fmt::format("exported, but the server does not answer over the network: {}: {}", to_string(failing->stage),
                         failing->detail),
             fmt::format("run `sharefs probe {}`", probe.host), ""}};
  }
  // Directories only: mountd leaves out clients that others of the same directory cover, and etab has told of each.
  Diagnoses diagnoses;
  for (const auto& line : composed.exports) {
    const auto real = real_path(line.directory, facts);
    if (std::none_of(probe.exports.begin(), probe.exports.end(),
                     [&](const sys::ExportListing& listing) { return listing.directory == real; }))
      diagnoses.push_back(
          told("SF132", line.origin,
               fmt::format("{} is not in the list that the server gives over the network", line.directory),
               fmt::format("run `sharefs probe {}`", probe.host)));
  }
  return diagnoses;
}

} // namespace sharefs::exports

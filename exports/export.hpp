#pragma once
// The values of exports(5): which client may mount which directory, with which options, and where the entry stands.
#include "base/diagnosis.hpp"
#include "base/origin.hpp"
#include "exports/settings.hpp"

#include <span>
#include <string>
#include <vector>

namespace sharefs::exports {

/// Returns a diagnosis whose subject is the place `origin`.
Diagnosis at(Severity severity, std::string code, const Origin& origin, std::string message, std::string hint = {});

/// One directory for one client, from an exports file, sharefs.yaml or etab.
struct Export {
  std::string directory; ///< as written, with quotes and `\040` escapes decoded; in etab it is resolved
  std::string client;    ///< as written; "*" when the line names none, which means everyone
  Settings settings;
  /// One list that means the settings: the options of all `-option,...` words that stand before this client on its
  /// line, and its own. Where they would mean something else in one list (a `sec=` counts up to the end of its word),
  /// this is the shortest list.
  std::vector<std::string> options;
  Origin origin; ///< of the client
  Origin line;   ///< of the directory, which several clients may share
  friend bool operator==(const Export&, const Export&) = default;
};
/// Returns the entries of the first line: the clients of the first directory of `exports`.
std::span<const Export> first_line(std::span<const Export> exports);
/// Counts the directories, whatever the number of their clients: to a user one directory is one export.
std::size_t count_directories(std::span<const Export> exports);
/// Makes an export that does not come from exports(5) text, and adds the options that exportfs warns about when they
/// are missing. An element of `options` may hold several options ("rw,sync"); an empty list stands for
/// rw,sync,no_subtree_check,root_squash. Unknown options are kept for diagnose_entry() to report. `own` holds options
/// of this client only, which come after the others.
Export make_export(std::string directory, std::string client, const std::vector<std::string>& options, Origin origin,
                   const std::vector<std::string>& own = {});

/// The file that sharefs owns. exportfs(8) reads it after /etc/exports, which sharefs never touches.
inline constexpr const char* k_own_file = "/etc/exports.d/sharefs.exports";
inline constexpr const char* k_exports_file = "/etc/exports";
inline constexpr const char* k_exports_directory = "/etc/exports.d";
inline constexpr const char* k_etab = "/var/lib/nfs/etab";

} // namespace sharefs::exports

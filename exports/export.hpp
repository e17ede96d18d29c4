#pragma once
// The values of exports(5): who may mount which directory, with which options, and where that was written.
#include "base/diagnosis.hpp"
#include "base/origin.hpp"
#include "exports/settings.hpp"

#include <span>
#include <string>
#include <vector>

namespace sharefs::exports {

/// A diagnosis of the place `origin`.
Diagnosis at(Severity severity, std::string code, const Origin& origin, std::string message, std::string hint = {});

/// One directory for one client: of an exports file, of sharefs.yaml, or of etab.
struct Export {
  std::string directory; ///< as written, quotes and `\040` escapes decoded; in etab resolved
  std::string client;    ///< as written; "*" when the line names none, which means everyone
  Settings settings;     ///< what the two lists mean together
  /// Options of the line's `-option,...` words that stand before this client, in one list. Where several words mean
  /// something else than one (a `sec=` ends with its word), all of it stands in `options`, in the shortest form.
  std::vector<std::string> defaults;
  std::vector<std::string> options; ///< its own, which come after the defaults
  Origin origin;                    ///< of the client
  Origin line;                      ///< of the directory, which several clients may follow
  friend bool operator==(const Export&, const Export&) = default;
};
/// The clients that stand behind the first directory of `exports`.
std::span<const Export> first_line(std::span<const Export> exports);
/// How many directories are exported, to however many clients: what a person calls an export.
std::size_t count_directories(std::span<const Export> exports);
/// An export that was never text of exports(5), with the options that exportfs complains about if they are not written.
/// An element of `options` may hold several ("rw,sync"); none at all: rw,sync,no_subtree_check,root_squash. Options
/// that do not exist are left to diagnose_entry(). `own`: options of this client, behind those of all; the latter are
/// then written as defaults of its line.
Export make_export(std::string directory, std::string client, const std::vector<std::string>& options, Origin origin,
                   const std::vector<std::string>& own = {});

/// The file that sharefs owns. exportfs(8) reads it after /etc/exports, which sharefs never touches.
inline constexpr const char* k_own_file = "/etc/exports.d/sharefs.exports";
inline constexpr const char* k_exports_file = "/etc/exports";
inline constexpr const char* k_exports_directory = "/etc/exports.d";
inline constexpr const char* k_etab = "/var/lib/nfs/etab";

} // namespace sharefs::exports

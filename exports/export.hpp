#pragma once
// The values of exports(5): who may mount which directory, with which options, and where that was written.
#include <string>
#include <vector>

namespace sharefs::exports {

/// Where a value was written; line and column (in bytes) count from 1, 0 means "not from a file".
struct Origin {
  std::string file;
  int line = 0, column = 0;
  [[nodiscard]] std::string text() const; ///< "/etc/exports:3:5", or the file alone
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// One `client(options)` of a line.
struct Client {
  std::string name; ///< as written; "*" when the line names none, which means everyone
  /// Options of the line's `-option,...` words that stand before this client, in one list (with several words that is
  /// not quite exportfs' way behind a `sec=`, which ends with its word).
  std::vector<std::string> defaults;
  std::vector<std::string> options; ///< its own, which come after the defaults
  Origin origin;
  friend bool operator==(const Client&, const Client&) = default;
};

/// One line: a directory and its clients, never without one.
struct Export {
  std::string directory; ///< as written, quotes and `\040` escapes decoded
  std::vector<Client> clients;
  Origin origin;
  friend bool operator==(const Export&, const Export&) = default;
};

/// The file that sharefs owns. exportfs(8) reads it after /etc/exports, which sharefs never touches.
inline constexpr const char* k_own_file = "/etc/exports.d/sharefs.exports";
inline constexpr const char* k_exports_file = "/etc/exports";
inline constexpr const char* k_exports_directory = "/etc/exports.d";
inline constexpr const char* k_etab = "/var/lib/nfs/etab";

} // namespace sharefs::exports

#pragma once
// What the files of this machine mount: the lines of /etc/fstab, and the .mount units that somebody wrote.
#include "sys/system.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

inline constexpr const char* k_fstab = "/etc/fstab";
inline constexpr const char* k_unit_directory = "/etc/systemd/system";

struct ConfiguredMount {
  std::string origin;  ///< "/etc/fstab:3", or the path of a unit
  std::string source;  ///< /dev/sda1, UUID=..., server:/path
  std::string target;  ///< absolute, normalized
  std::string type;    ///< ext4, nfs, auto ...; of a unit also empty
  std::string options; ///< as written; of a line without options "defaults" (fstab(5))
  friend bool operator==(const ConfiguredMount&, const ConfiguredMount&) = default;
};

/// Parses fstab(5) and decodes its escapes. Lines without a mount point (swap), and lines that cannot be read, are
/// skipped.
std::vector<ConfiguredMount> parse_fstab(std::string_view text);
/// Parses systemd.mount(5). Of several settings of one name the last one counts. The fields are empty in a unit without
/// settings, as a masked one.
ConfiguredMount parse_mount_unit(const std::string& path, std::string_view text);
/// Returns the lines of /etc/fstab, then the .mount units in /etc/systemd/system. An entry that mounts only by hand
/// (noauto, a unit that is not enabled) is one of them. A file that cannot be read counts as empty.
std::vector<ConfiguredMount> read_configured_mounts(System& system);
/// Returns the entry for the file system on which `path` (without links) should lie, if that is not mounted: what lies
/// there is the bare directory below the mount point. nullptr: there is no such entry.
const ConfiguredMount* find_unmounted(const std::vector<ConfiguredMount>& configured, const MountTable& table,
                                      const std::string& path);
/// Returns what to do about a file system that is not mounted although this entry names it.
std::string hint_to_mount(const ConfiguredMount& one);

} // namespace sharefs::sys

#pragma once
// The lines of /etc/fstab, as plain values.
#include "sys/mounts/mount_table.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

inline constexpr const char* k_fstab = "/etc/fstab";

struct FstabLine {
  std::size_t number = 0; ///< from 1
  std::string source;     ///< /dev/sda1, UUID=..., server:/path
  std::string target;     ///< absolute, normalized
  std::string type;       ///< ext4, nfs, auto ...
  std::string options;    ///< as written; "defaults" if they are left out (fstab(5))
};

/// Parses fstab(5) and decodes its escapes. Lines without a mount point (swap), and lines that cannot be read, are
/// skipped.
std::vector<FstabLine> parse_fstab(std::string_view text);
/// Returns the line for the file system on which `path` (without links) should lie, if that is not mounted: what lies
/// there is the bare directory below the mount point. nullptr: there is no such line.
const FstabLine* find_unmounted(const std::vector<FstabLine>& lines, const MountTable& table, const std::string& path);
/// Returns what to do about a file system that is not mounted although fstab has this line.
std::string hint_to_mount(const FstabLine& line);

} // namespace sharefs::sys

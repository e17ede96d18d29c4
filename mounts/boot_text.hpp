#pragma once
// What makes a mount come back at boot, as text: systemd units, a line of fstab, a block of rc.local. Pure.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// systemd-escape(1) of a path: "/data/share" -> "data-share"; "/" -> "-".
std::string escape_unit(std::string_view path);
/// The way back, of a unit's name without its suffix.
std::string unescape_unit(std::string_view name);

/// The names and texts of a mount's units. Every text starts with k_unit_mark.
struct UnitTexts {
  std::string mount, automount, service;
};
inline constexpr std::string_view k_unit_mark = "# Written by sharefs: ";
/// The .mount and .automount of a target, and the service that waits for the server and then starts the mount.
UnitTexts unit_names(const std::string& target);
/// `program`: sharefs as the machine has it. `failed` for what a unit cannot say: a control character, a backslash at
/// the end, a name of more than 255 bytes.
Result<UnitTexts> unit_texts(const MountPoint& point, const std::string& program);

/// Marks our line in fstab; mount(8) drops it.
inline constexpr std::string_view k_fstab_mark = "x-sharefs.managed";
/// One line without its end. `bg`: mount.nfs goes on trying by itself (where there is no systemd).
Result<std::string> fstab_line(const MountPoint& point, bool bg);
/// Our text for each mount, by its target; nullopt takes it away.
using BootTexts = std::map<std::string, std::optional<std::string>>;
/// fstab with each of `lines` in place of our line for its target, at the end if there was none. Every other byte is
/// kept, also a missing end of the last line.
std::string with_fstab_lines(std::string_view text, const BootTexts& lines);
BootTexts our_fstab_lines(std::string_view text);

/// Around our commands for a target in rc.local, which stands behind each.
inline constexpr std::string_view k_block_begins = "# >>> sharefs ", k_block_ends = "# <<< sharefs ";
/// The commands of a mount in rc.local, between two marks.
Result<std::string> rc_local_block(const MountPoint& point, const std::string& program);
/// The same for rc.local, whose final `exit 0` stays behind the blocks. An empty `text` becomes a script.
std::string with_rc_local_blocks(std::string_view text, const BootTexts& blocks);
BootTexts our_rc_local_blocks(std::string_view text);
/// Nothing is left in it but what we begin one with.
bool is_bare_rc_local(std::string_view text);
/// True if it does something besides our blocks and what distributions ship (`exit 0`, `touch /var/lock/subsys/local`).
bool has_other_commands(std::string_view rc_local);

} // namespace sharefs::mounts

#pragma once
// The texts that mount something at boot: systemd units, a line of fstab, a block of rc.local. All functions are pure.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::mounts {

/// Escapes a path as `systemd-escape --path` does: "/data/share" -> "data-share"; "/" -> "-".
std::string escape_unit(std::string_view path);
/// Returns the path of a unit's name (without its suffix).
std::string unescape_unit(std::string_view name);

/// The names and texts of a mount's units. Every text starts with k_unit_mark.
struct UnitTexts {
  std::string mount, automount, service;
};
inline constexpr std::string_view k_unit_mark = "# Written by sharefs: ";
inline bool is_ours(std::string_view unit) {
  return unit.starts_with(k_unit_mark);
}
/// Returns the path of a unit in /etc/systemd/system.
std::string unit_path(const std::string& name);
/// Returns the names of the .mount and .automount of a target, and of the service that waits for the server and then
/// starts the mount.
UnitTexts unit_names(const std::string& target);
/// Returns the texts of the units. `program` is the path of sharefs. Error `failed` for what a unit cannot express: a
/// control character, a backslash at the end, a name of more than 255 bytes.
Result<UnitTexts> unit_texts(const MountPoint& point, const std::string& program);

/// The option that marks our line in fstab; mount(8) ignores it.
inline constexpr std::string_view k_fstab_mark = "x-sharefs.managed";
/// Returns the line of fstab, without line end. `bg`: mount.nfs itself retries in the background (without systemd).
Result<std::string> fstab_line(const MountPoint& point, bool bg);

/// A file in which our entries stand beside those of others.
enum class BootFile { fstab, rc_local };
/// Our text for each mount, by its target; nullopt removes the text.
using BootTexts = std::map<std::string, std::optional<std::string>>;
/// Returns the file with each of `texts` in place of ours for its target. A new one stands at the end, or before the
/// command that ends rc.local, and so does one that stood behind that. An empty rc.local becomes a new script. Every
/// other byte is kept, also a missing newline at the end.
std::string with_texts(BootFile file, std::string_view text, const BootTexts& texts);
BootTexts our_texts(BootFile file, std::string_view text);

/// Our commands for a target in rc.local stand between two lines that begin with these marks and end with the target.
inline constexpr std::string_view k_block_begins = "# >>> sharefs ", k_block_ends = "# <<< sharefs ";
/// Returns the commands for a mount in rc.local, between the two marks. They try until it is mounted. `outer`: the
/// mount point above it that has to be mounted first; "" if there is none.
Result<std::string> rc_local_block(const MountPoint& point, const std::string& program, const std::string& outer = "");
/// True if rc.local contains only the lines of a new script of sharefs.
bool is_bare_rc_local(std::string_view text);
/// True if rc.local has commands besides our blocks and those that distributions ship (`exit 0`,
/// `touch /var/lock/subsys/local`).
bool has_other_commands(std::string_view rc_local);

} // namespace sharefs::mounts

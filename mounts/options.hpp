#pragma once
// The mount options of nfs(5) and mount(8), as one table. An option is a setting with a key and a value: `soft`, `hard`
// and `softerr` are three values of one key, and the last setting of a key counts.
#include "base/diagnosis.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

enum class OptionUse {
  // Properties of the mount; they are compared with mountinfo:
  exact,
  at_most,     ///< negotiated: a lower value is right, because the server may have lowered it
  one_of,      ///< one of a list with `:` is right, as the server offers it
  version,     ///< for `4` the versions 4.0, 4.1 and 4.2 are right
  transport,   ///< for tcp also tcp6 is right
  first_mount, ///< the first mount of the server decides: a difference is reported, but is no fault
  unseen,      ///< not compared: mountinfo does not show it, or shows it in another way
  // No properties of the mount:
  mount_nfs, ///< says how mount.nfs mounts; not visible afterwards
  fstab,     ///< has a meaning in fstab only; left out when mounting
  ignored,   ///< accepted, but has had no effect for years
  refused,   ///< would not make an NFS mount
};

enum class Versions : std::uint8_t { any, v3, v4 };

struct OptionSpec {
  std::string_view name;  ///< as it is written, without `=value`
  std::string_view key;   ///< settings of the same key exclude each other; empty: the name is the key
  std::string_view value; ///< the value of an option without `=`; empty: the value follows `=`
  OptionUse use;
  Versions versions;            ///< the NFS versions for which it has an effect
  std::string_view absent;      ///< the value if mountinfo does not show the key; empty: not known
  std::string_view consequence; ///< what a person should know before using it; empty: nothing special

  /// True if it has an effect for this version: 3, 4, or 0 if the version is not decided.
  [[nodiscard]] bool has_effect(int major) const {
    return versions == Versions::any || major == 0 || (versions == Versions::v3) == (major == 3);
  }
};
std::span<const OptionSpec> option_table();
/// Returns the row of `NAME` or `NAME=VALUE`; nullptr for an option that the table does not have.
const OptionSpec* find_option(std::string_view word);

struct Setting {
  std::string key, value;
  std::string text; ///< as it was written
  friend bool operator==(const Setting&, const Setting&) = default;
};
using Settings = std::vector<Setting>;

/// Parses comma-separated lists into settings, in their order. A comma in double quotes does not separate. `actimeo`
/// stays one setting. The key of an unknown option is its own name.
Settings parse_options(const std::vector<std::string>& lists);
/// Returns the options that also apply to a bind mount of a local directory (sys::k_bind): "ro,nosuid".
std::string bind_options(const Settings& settings);
/// Returns `base` with the settings of `extra`: a setting replaces the one of the same key, or is appended. A new
/// `actimeo` removes the four times that it sets.
Settings override_settings(Settings base, const Settings& extra);
/// Returns the setting of `key`, the last one if there are several; nullptr if there is none.
const Setting* find_setting(const Settings& settings, std::string_view key);
/// Returns the value of `key`; "" if there is none.
std::string_view value_of(const Settings& settings, std::string_view key);
/// Replaces `actimeo=N` by the four settings that mountinfo shows instead; the others stay as they are.
Settings expand(const Settings& settings);
/// Joins the settings with commas.
std::string format_options(const Settings& settings);
/// Returns the settings for mount.nfs, without the options that only fstab understands.
Settings for_mount(const Settings& settings);
/// Returns "4.2", "4", "3", or "" if no version is asked for; `vers=4,minorversion=1` is "4.1".
std::string version_of(const Settings& settings);
/// Returns 3, 4, or 0 for any version.
int major_version(std::string_view version);

/// Checks options: SF205 unknown, SF206 refused or contradicting, SF207 without effect for the version. `subject` is
/// the mount's name or origin.
Diagnoses check_options(const Settings& settings, const std::string& subject);
/// Returns the consequences of the options that are set, one line each.
std::vector<std::string> consequences(const Settings& settings);

} // namespace sharefs::mounts

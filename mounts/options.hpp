#pragma once
// Mount options as nfs(5) and mount(8) name them, as one table. An option is a setting: a key and a value, so that
// `soft`, `hard` and `softerr` are three values of one key, and the last setting of a key wins.
#include "base/diagnosis.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

enum class OptionUse {
  // Part of the mount. What was asked for is compared with what mountinfo shows:
  exact,
  at_most,     ///< negotiated: the server may have lowered it
  version,     ///< `4` is met by 4.0, 4.1 and 4.2
  transport,   ///< tcp is met by tcp6
  first_mount, ///< fixed by the first mount of the server: a difference is reported, but is no fault
  unseen,      ///< not compared: mountinfo does not show it, or shows it otherwise
  // No part of the mount:
  mount_nfs, ///< says how mount.nfs mounts, and leaves no trace
  fstab,     ///< means something in fstab only; left out of the mount
  ignored,   ///< accepted, and without effect for years
  refused,   ///< makes something else than an NFS mount
};

enum class Versions : std::uint8_t { any, v3, v4 };

struct OptionSpec {
  std::string_view name;  ///< as written, without `=value`
  std::string_view key;   ///< settings of the same key exclude each other; empty: the name is the key
  std::string_view value; ///< of a flag; empty: the value stands behind `=`
  OptionUse use;
  Versions versions;            ///< where it has an effect
  std::string_view absent;      ///< the value that is meant when mountinfo does not show the key; empty: not known
  std::string_view consequence; ///< what a person should know before using it; empty: nothing special

  /// `major`: 3, 4, or 0 for a version that is not decided.
  [[nodiscard]] bool has_effect(int major) const {
    return versions == Versions::any || major == 0 || (versions == Versions::v3) == (major == 3);
  }
};
std::span<const OptionSpec> option_table();
/// The row of `NAME` or `NAME=VALUE`; nullptr for an option that nfs(5) does not have.
const OptionSpec* find_option(std::string_view word);

struct Setting {
  std::string key, value;
  std::string text; ///< as it was written
  friend bool operator==(const Setting&, const Setting&) = default;
};
using Settings = std::vector<Setting>;

/// One or more comma-separated lists (commas in double quotes separate nothing) -> settings in their order. `actimeo`
/// stays one setting. An unknown option gets its own name as key.
Settings parse_options(const std::vector<std::string>& lists);
/// Those that also count for a local directory (sys::k_bind): "ro,nosuid".
std::string bind_options(const Settings& settings);
/// `base` with the settings of `extra`: one of the same key takes the place of the old one, others are appended.
/// A new `actimeo` drops the four times that it stands for.
Settings override_settings(Settings base, const Settings& extra);
/// The setting of `key`, the last one if there are several; nullptr if there is none.
const Setting* find_setting(const Settings& settings, std::string_view key);
/// Its value; "" if there is none.
std::string_view value_of(const Settings& settings, std::string_view key);
/// `actimeo=N` as the four settings that mountinfo shows instead; everything else unchanged.
Settings expand(const Settings& settings);
/// Joined with commas.
std::string format_options(const Settings& settings);
/// Without the options that only fstab understands: what mount.nfs gets.
Settings for_mount(const Settings& settings);
/// "4.2", "4", "3", or "" when no version is asked for; `vers=4,minorversion=1` is "4.1".
std::string version_of(const Settings& settings);
/// 3, 4, or 0 for any: what probes and messages need.
int major_version(std::string_view version);

/// SF205 unknown options, SF206 refused or contradicting ones, SF207 those without effect for the version.
/// `subject` is the mount's name or origin.
Diagnoses check_options(const Settings& settings, const std::string& subject);
/// What follows from the options that are set, one line each.
std::vector<std::string> consequences(const Settings& settings);

} // namespace sharefs::mounts

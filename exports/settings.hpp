#pragma once
// Turns a list of export options into values that can be compared, as nfs-utils reads the list (parseopts in
// support/nfs/exports.c). "rw" and "ro,rw" are the same settings; so are a line of exports(5) and its line in etab.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

/// Bits of Settings::flags, in the order in which exportfs writes their words.
enum Flag : std::uint32_t {
  k_read_only = 1U << 0U,
  k_async = 1U << 1U,
  k_write_delay = 1U << 2U,
  k_no_hide = 1U << 3U,
  k_cross_mounts = 1U << 4U,
  k_insecure = 1U << 5U,
  k_root_squash = 1U << 6U,
  k_all_squash = 1U << 7U,
  k_no_subtree_check = 1U << 8U,
  k_insecure_locks = 1U << 9U,
  k_no_acl = 1U << 10U,
  k_no_readdirplus = 1U << 11U,
  k_security_label = 1U << 12U,
  k_pnfs = 1U << 13U,
  k_sign_handles = 1U << 14U,
};
/// The words that set or clear a flag. Source: exports(5), and the table of parseopts() for names that the manual
/// leaves out.
struct FlagOption {
  Flag flag;
  std::string_view set, clear; ///< words; "" where exportfs has none
  bool alias = false;          ///< another spelling of a row above
  std::string_view since = {}; ///< the first version of nfs-utils that knows it; "": all versions do
};
inline constexpr std::array k_flag_options{
    FlagOption{k_read_only, "ro", "rw"},
    FlagOption{k_async, "async", "sync"},
    FlagOption{k_root_squash, "root_squash", "no_root_squash"},
    FlagOption{k_all_squash, "all_squash", "no_all_squash"},
    FlagOption{k_insecure, "insecure", "secure"},
    FlagOption{k_no_subtree_check, "no_subtree_check", "subtree_check"},
    FlagOption{k_write_delay, "wdelay", "no_wdelay"},
    FlagOption{k_no_hide, "nohide", "hide"},
    FlagOption{k_cross_mounts, "crossmnt", "nocrossmnt"},
    FlagOption{k_insecure_locks, "insecure_locks", "secure_locks"},
    FlagOption{k_insecure_locks, "no_auth_nlm", "auth_nlm", true},
    FlagOption{k_no_acl, "no_acl", "acl"},
    FlagOption{k_no_readdirplus, "nordirplus", ""},
    FlagOption{k_security_label, "security_label", ""},
    FlagOption{k_pnfs, "pnfs", "no_pnfs"},
    FlagOption{k_sign_handles, "sign_fh", "", false, "2.9"},
};
/// The flags that may differ between the security flavours of one export (exports(5), "sec="), and that the kernel's
/// server keeps for each flavour: /proc/fs/nfsd/export_features. (Without nfsd in the kernel, exportfs knows `insecure`
/// only for all flavours together.)
inline constexpr std::uint32_t k_flavour_flags = k_read_only | k_root_squash | k_all_squash | k_insecure;

struct Flavour {
  std::string name; ///< sys, none, krb5, krb5i, krb5p
  std::uint32_t flags = 0;
  friend bool operator==(const Flavour&, const Flavour&) = default;
};

struct Settings {
  std::uint32_t flags = k_read_only | k_write_delay | k_root_squash | k_no_subtree_check;
  std::vector<Flavour> security; ///< in order of preference; never empty after settings_of()
  /// Values that are given and differ from exportfs' defaults, by the option's name: {"fsid", "0"}. Ids are decimal
  /// numbers, and so is an fsid that is no UUID; `mountpoint` without a path has an empty value.
  std::map<std::string_view, std::string> values;

  /// Returns the value of an option; "" if it is not given.
  [[nodiscard]] std::string value(std::string_view option) const;
  [[nodiscard]] bool has(Flag flag) const { return (flags & flag) != 0; }
  // The following functions read `security`, so the settings have to come from settings_of() or in_force().
  /// True if some flavour may write.
  [[nodiscard]] bool writable() const;
  /// True if root of a client that does not use Kerberos is root here: not squashed, or squashed to user 0.
  [[nodiscard]] bool root_is_root() const;
  /// True if that root may write from any port: then a program needs not be root on the client to be root here.
  [[nodiscard]] bool any_program_is_root() const;
  /// True if every user of a client is squashed to user or group 0, and may write.
  [[nodiscard]] bool everyone_is_root() const;
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// An option that nfs-utils refuses; it then drops the entry and stops reading the file.
struct OptionError {
  std::size_t index = 0; ///< in the list
  std::string code;      ///< SF107: there is no such option; SF108: its value is wrong; SF121: exportfs is too old
  std::string message;   ///< "unknown option `rx`"
  std::string hint;
};

/// Applies one list to the settings that earlier lists gave, as exportfs applies each `-word` of a line and then the
/// client's own list; a `sec=` counts up to the end of its list. Bad words are skipped, and the first one is returned.
/// Whether a number or a path is right only exportfs knows; `refused` is an option that it has refused.
std::optional<OptionError> apply_options(Settings& settings, const std::vector<std::string>& options,
                                         std::string_view refused = {});
/// Returns the applied settings in a normal form, so that equal meanings compare equal: k_flavour_flags stand in
/// `security` only, and a missing `sec=` is `sys`.
Settings in_force(Settings applied);
/// Returns the settings of one list; bad words are skipped.
Settings settings_of(const std::vector<std::string>& options);
/// Returns the first bad word of the list.
std::optional<OptionError> find_bad_option(const std::vector<std::string>& options, std::string_view refused = {});

/// Splits "rw, sync" at commas, and skips blanks after a comma as exportfs does. "" gives no option, a comma at the end
/// is ignored, and two commas give an empty option, which is an unknown one.
std::vector<std::string> split_options(std::string_view list);

/// Returns the differences in words: "ro instead of rw", "root_squash instead of no_root_squash". Empty if there are
/// none.
std::vector<std::string> differences(const Settings& wanted, const Settings& found);
/// Returns options that mean these settings: ro or rw, and those that differ from exportfs' defaults
/// ("rw,no_root_squash").
std::string summary(const Settings& settings);
/// Returns all options that are in force for one flavour, in the order in which exportfs writes them:
/// "rw,sync,wdelay,hide,...".
std::string effective(const Settings& settings, const Flavour& flavour);

/// Returns the first version of nfs-utils that knows the option (a word with or without a value); "" if all versions
/// do, or none.
std::string_view option_since(std::string_view option);

} // namespace sharefs::exports

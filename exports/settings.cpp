#include "exports/settings.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fmt/format.h>
#include <tl/expected.hpp>
#include <utility>

namespace sharefs::exports {

namespace {

/// Returns the row of a word, and true if the word sets the flag.
std::optional<std::pair<const FlagOption*, bool>> flag_option(std::string_view word) {
  for (const auto& row : k_flag_options)
    if (!word.empty() && (word == row.set || word == row.clear))
      return std::pair(&row, word == row.set);
  return std::nullopt;
}

/// The state while one list is applied. A flag after a `sec=` changes the flavours that it names, and the export's
/// flags.
struct Reader {
  Settings& settings;
  std::vector<std::size_t> active; ///< indices in settings.security
  bool saw_reexport = false;
};

constexpr std::string_view k_nobody = "65534";

using Outcome = tl::expected<void, std::string>; // the message

Outcome bad(std::string_view name, std::string_view value, std::string_view what) {
  return tl::make_unexpected(fmt::format("`{}{}` is wrong: {}", name, value, what));
}

/// Parses the whole `value` as strtoll(3) does; nullopt if it is empty or no number.
std::optional<std::int64_t> parse_decimal(const std::string& value) {
  char* end = nullptr;
  const auto result = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0')
    return std::nullopt;
  return result;
}

/// Sets the option to this value, or removes it if the value is exportfs' default `usual`.
Outcome set_value(Reader& reader, std::string_view option, std::string value, std::string_view usual) {
  if (value == usual)
    reader.settings.values.erase(option);
  else
    reader.settings.values[option] = std::move(value);
  return {};
}

Outcome read_id(Reader& reader, std::string_view option, const std::string& value) {
  const auto id = parse_decimal(value);
  if (!id)
    return tl::make_unexpected(fmt::format("`{}` is no number: exportfs takes user and group ids, not names", value));
  // Old files write -2 for nobody, hence the cast.
  return set_value(reader, option, std::to_string(static_cast<std::uint32_t>(*id)), k_nobody);
}

/// A UUID is kept even if a number is given, too, because exportfs loses the number when it reads both from etab.
Outcome read_fsid(Reader& reader, std::string_view option, const std::string& value) {
  constexpr std::ptrdiff_t k_uuid_digits = 32;
  if (reader.saw_reexport)
    return bad("fsid=", value, "it has to stand before `reexport=`");
  char* end = nullptr;
  const auto number = value == "root" ? 0 : std::strtoull(value.c_str(), &end, 0);
  if (value == "root" || (!value.empty() && *end == '\0')) {
    if (reader.settings.value(option).size() < k_uuid_digits)
      reader.settings.values[option] = std::to_string(static_cast<std::uint32_t>(number));
    return {};
  }
  const auto digits = std::count_if(value.begin(), value.end(),
                                    [](char byte) { return std::isxdigit(static_cast<unsigned char>(byte)) != 0; });
  if (digits != k_uuid_digits)
    return bad("fsid=", value, "it is a number, `root`, or a UUID of 32 hexadecimal digits");
  reader.settings.values[option] = value;
  return {};
}

Outcome read_security(Reader& reader, std::string_view /*option*/, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> k_flavours{{{"sys", "sys"},
                                                                                     {"unix", "sys"},
                                                                                     {"null", "none"},
                                                                                     {"none", "none"},
                                                                                     {"krb5", "krb5"},
                                                                                     {"krb5i", "krb5i"},
                                                                                     {"krb5p", "krb5p"}}};
  std::vector<std::size_t> active;
  auto security = reader.settings.security;
  for (const auto& name : split(value, ':')) {
    const auto* const known =
        std::find_if(k_flavours.begin(), k_flavours.end(), [&](const auto& row) { return row.first == name; });
    if (known == k_flavours.end())
      return bad("sec=", value, fmt::format("`{}` is none of sys, krb5, krb5i, krb5p, none", name));
    const auto there =
        std::find_if(security.begin(), security.end(), [&](const Flavour& row) { return row.name == known->second; });
    active.push_back(static_cast<std::size_t>(there - security.begin()));
    if (there == security.end())
      security.push_back({std::string(known->second), reader.settings.flags & k_flavour_flags});
  }
  reader.active = std::move(active);
  reader.settings.security = std::move(security);
  return {};
}

Outcome read_transport(Reader& reader, std::string_view option, const std::string& value) {
  auto modes = reader.settings.value(option);
  for (const auto& name : split(value, ':')) {
    if (name != "none" && name != "tls" && name != "mtls")
      return bad("xprtsec=", value, fmt::format("`{}` is none of none, tls, mtls", name));
    const auto known = split(modes, ':');
    if (std::find(known.begin(), known.end(), name) == known.end())
      modes += (modes.empty() ? "" : ":") + name;
  }
  reader.settings.values[option] = std::move(modes);
  return {};
}

Outcome read_reexport(Reader& reader, std::string_view option, const std::string& value) {
  if (reader.saw_reexport)
    return bad("reexport=", value, "it may be given once only");
  if (value != "auto-fsidnum" && value != "predefined-fsidnum" && value != "none")
    return bad("reexport=", value, "it is auto-fsidnum, predefined-fsidnum or none");
  reader.saw_reexport = true;
  return set_value(reader, option, value, "none");
}

/// Reads one id or range: exportfs ends the value at the first comma, so that a second range is an unknown option. The
/// option has no effect in the kernel's server, and exportfs does not write it to etab reliably, so it is no part of
/// the settings.
Outcome read_squash(Reader& /*reader*/, std::string_view /*option*/, const std::string& value) {
  const auto dash = value.find('-', 1);
  for (const auto& id : {value.substr(0, dash), dash == std::string::npos ? std::string("0") : value.substr(dash + 1)})
    if (id == "-1" || (!id.empty() && !parse_decimal(id)))
      return bad("squash_uids or squash_gids ", value, "it is one id or one range, as `0-99`");
  return {};
}

/// The last of `refer=` and `replicas=` counts, because an export has only one list of other servers.
Outcome read_places(Reader& reader, std::string_view option, const std::string& value) {
  reader.settings.values.erase("refer");
  reader.settings.values.erase("replicas");
  reader.settings.values[option] = value;
  return {};
}

Outcome read_mountpoint(Reader& reader, std::string_view /*option*/, const std::string& value) {
  reader.settings.values["mountpoint"] = value;
  return {};
}

struct ValueOption {
  std::string_view name;
  Outcome (*read)(Reader&, std::string_view option, const std::string& value);
  std::string_view since = {};
};
constexpr std::array k_value_options{
    ValueOption{"anonuid", read_id},
    ValueOption{"anongid", read_id},
    ValueOption{"fsid", read_fsid},
    ValueOption{"sec", read_security},
    ValueOption{"mountpoint", read_mountpoint},
    ValueOption{"mp", read_mountpoint},
    ValueOption{"refer", read_places},
    ValueOption{"replicas", read_places},
    ValueOption{"squash_uids", read_squash},
    ValueOption{"squash_gids", read_squash},
    ValueOption{"reexport", read_reexport, "2.6.3"},
    ValueOption{"xprtsec", read_transport, "2.6.4"},
};

/// Returns the row of `NAME=VALUE`; nullptr for another word.
const ValueOption* value_option(std::string_view word) {
  const auto equals = word.find('=');
  const auto* const row = std::ranges::find(k_value_options, word.substr(0, equals), &ValueOption::name);
  return equals == std::string_view::npos || row == k_value_options.end() ? nullptr : row;
}

void set_flag(std::uint32_t& flags, Flag flag, bool set) {
  flags = set ? flags | flag : flags & ~static_cast<std::uint32_t>(flag);
}

/// Applies one option; nullopt if there is no such option.
std::optional<Outcome> read_option(Reader& reader, const std::string& option) {
  if (const auto found = flag_option(option)) {
    const auto [row, set] = *found;
    set_flag(reader.settings.flags, row->flag, set);
    if ((row->flag & k_flavour_flags) != 0)
      for (const auto index : reader.active)
        set_flag(reader.settings.security[index].flags, row->flag, set);
    return Outcome{};
  }
  if (option == "mountpoint" || option == "mp")
    return read_mountpoint(reader, option, "");
  if (const auto* const row = value_option(option))
    return row->read(reader, row->name, option.substr(row->name.size() + 1));
  return std::nullopt;
}

/// Returns the names of all options; those with a value end in `=`.
std::vector<std::string> option_names() {
  std::vector<std::string> names{"mountpoint", "mp"};
  for (const auto& row : k_flag_options)
    for (const auto word : {row.set, row.clear})
      if (!word.empty())
        names.emplace_back(word);
  for (const auto& row : k_value_options)
    names.push_back(fmt::format("{}=", row.name));
  return names;
}

std::string hint_for_unknown(const std::string& option) {
  if (option.empty())
    return "remove one of the two commas";
  const auto lower = lower_case(option);
  const auto names = option_names();
  if (lower != option) // names are case-sensitive
    for (const auto& name : names)
      if (lower == name || (name.ends_with('=') && lower.starts_with(name)))
        return fmt::format("options are written in lower case: `{}`", lower);
  const auto trimmed = std::string(trim(option));
  if (trimmed != option && std::find(names.begin(), names.end(), trimmed) != names.end())
    return "remove the space before the comma";
  auto guess = did_you_mean_hint(
      lower.substr(0, lower.find('=') == std::string::npos ? lower.size() : lower.find('=') + 1), names);
  return guess.empty() ? "see exports(5) for the options that there are" : guess;
}

/// True if root of a client that does not use Kerberos is root here: not squashed, or squashed to user 0.
bool is_root(const Flavour& flavour, bool to_root) {
  return flavour.name == "sys" && (flavour.flags & k_all_squash) == 0 &&
         ((flavour.flags & k_root_squash) == 0 || to_root);
}

} // namespace

std::optional<OptionError> apply_options(Settings& settings, const std::vector<std::string>& options) {
  Reader reader{settings, {}, false};
  std::optional<OptionError> first;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto outcome = read_option(reader, options[i]);
    if (first || (outcome && *outcome))
      continue;
    if (outcome)
      first = {i, false, outcome->error(), ""};
    else
      first = {i, true,
               options[i].empty() ? "an empty option between two commas"
                                  : fmt::format("unknown option `{}`", options[i]),
               hint_for_unknown(options[i])};
  }
  return first;
}

Settings in_force(Settings applied) {
  if (applied.security.empty())
    applied.security.push_back({"sys", applied.flags & k_flavour_flags});
  applied.flags &= ~k_flavour_flags; // from here on only `security` has these flags
  return applied;
}

std::string Settings::value(std::string_view option) const {
  const auto found = values.find(option);
  return found == values.end() ? "" : found->second;
}

bool Settings::writable() const {
  return std::any_of(security.begin(), security.end(),
                     [](const Flavour& flavour) { return (flavour.flags & k_read_only) == 0; });
}

bool Settings::root_is_root() const {
  const bool to_root = value("anonuid") == "0";
  return std::any_of(security.begin(), security.end(),
                     [&](const Flavour& flavour) { return is_root(flavour, to_root); });
}

bool Settings::any_program_is_root() const {
  const bool to_root = value("anonuid") == "0";
  return std::any_of(security.begin(), security.end(), [&](const Flavour& flavour) {
    return is_root(flavour, to_root) && (flavour.flags & (k_insecure | k_read_only)) == k_insecure;
  });
}

bool Settings::everyone_is_root() const {
  return (value("anonuid") == "0" || value("anongid") == "0") &&
         std::any_of(security.begin(), security.end(), [](const Flavour& flavour) {
           return (flavour.flags & (k_all_squash | k_read_only)) == k_all_squash;
         });
}

Settings settings_of(const std::vector<std::string>& options) {
  Settings settings;
  apply_options(settings, options);
  return in_force(std::move(settings));
}

std::optional<OptionError> find_bad_option(const std::vector<std::string>& options) {
  Settings settings;
  return apply_options(settings, options);
}

std::vector<std::string> split_options(std::string_view list) {
  std::vector<std::string> options;
  const auto pass_blanks = [&] {
    while (!list.empty() && (list.front() == ' ' || list.front() == '\t'))
      list.remove_prefix(1);
  };
  pass_blanks();
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    options.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    pass_blanks();
  }
  return options;
}

std::string_view option_since(std::string_view option) {
  if (const auto found = flag_option(option))
    return found->first->since;
  const auto* const row = value_option(option);
  return row == nullptr ? "" : row->since;
}

} // namespace sharefs::exports

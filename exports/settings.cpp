#include "exports/settings.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
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

/// An option with a value. exportfs judges the value, except where it may hold only certain words.
struct ValueOption {
  std::string_view name;
  std::string_view what = {};  ///< what is wrong with a value that is refused
  std::string_view words = {}; ///< the words that the value may hold, with `:` between them; "": any
  std::string_view since = {};
};
constexpr std::array k_value_options{
    ValueOption{"anonuid", "exportfs takes user and group ids, not names"},
    ValueOption{"anongid", "exportfs takes user and group ids, not names"},
    ValueOption{"fsid", "it is a number, `root`, or a UUID of 32 hexadecimal digits"},
    ValueOption{"sec", "it is a list of sys, krb5, krb5i, krb5p, none", "sys krb5 krb5i krb5p none unix null"},
    ValueOption{"mountpoint"},
    ValueOption{"mp"},
    ValueOption{"refer"},
    ValueOption{"replicas"},
    ValueOption{"squash_uids"},
    ValueOption{"squash_gids"},
    ValueOption{"reexport", "it is auto-fsidnum, predefined-fsidnum or none", "auto-fsidnum predefined-fsidnum none",
                "2.6.3"},
    ValueOption{"xprtsec", "it is a list of none, tls, mtls", "none tls mtls", "2.6.4"},
};

/// Returns the row of `NAME=VALUE`, or of one of the words that need no value; nullptr for another word.
const ValueOption* value_option(std::string_view word) {
  const auto equals = word.find('=');
  const bool is_bare = equals == std::string_view::npos && word != "mountpoint" && word != "mp";
  const auto* const row = std::ranges::find(k_value_options, word.substr(0, equals), &ValueOption::name);
  return is_bare || row == k_value_options.end() ? nullptr : row;
}

std::string value_of(std::string_view option) {
  return std::string(option.substr(std::min(option.find('='), option.size() - 1) + 1));
}

bool has_known_words(const ValueOption& row, std::string_view value) {
  return row.words.empty() || std::ranges::all_of(split(value, ':'), [&](const std::string& word) {
           return contains(split_words(row.words), word);
         });
}

void set_flag(std::uint32_t& flags, Flag flag, bool set) {
  flags = set ? flags | flag : flags & ~static_cast<std::uint32_t>(flag);
}

/// Adds the flavours of a `sec=`, and returns their indices. A new one begins with the flags that are set so far.
std::vector<std::size_t> add_flavours(Settings& settings, std::string_view value) {
  std::vector<std::size_t> indices;
  for (const auto& word : split(value, ':')) {
    const auto name = word == "unix" ? "sys" : word == "null" ? "none" : word;
    const auto there = std::ranges::find(settings.security, name, &Flavour::name);
    indices.push_back(static_cast<std::size_t>(there - settings.security.begin()));
    if (there == settings.security.end())
      settings.security.push_back({name, settings.flags & k_flavour_flags});
  }
  return indices;
}

/// Numbers are stored as exportfs reads them: old files write -2 for nobody. squash_uids= and squash_gids= have no
/// effect in the kernel's server, and exportfs does not write them to etab reliably, so they are no part of the
/// settings.
void set_value(Settings& settings, std::string_view name, std::string value) {
  constexpr std::string_view k_nobody = "65534";
  const bool is_id = name.starts_with("anon");
  if (is_id || name == "fsid") {
    char* end = nullptr;
    const auto number = std::strtoull(value.c_str(), &end, is_id ? 10 : 0);
    if ((value == "root" && !is_id) || (!value.empty() && *end == '\0'))
      value = std::to_string(static_cast<std::uint32_t>(number));
  }
  if (is_id && value == k_nobody)
    settings.values.erase(name);
  else if (!name.starts_with("squash_"))
    settings.values[name == "mp" ? "mountpoint" : name] = std::move(value);
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

/// Explains the option at `index`. `is_known`: the text is right, but exportfs has refused it.
OptionError explain_bad(std::size_t index, const std::string& option, bool is_known) {
  const auto* const row = value_option(option);
  const auto since = option_since(option);
  if (is_known && (row == nullptr || !since.empty()))
    return {index, "SF121",
            fmt::format("the installed nfs-utils does not know `{}`", option.substr(0, option.find('='))),
            since.empty() ? "" : fmt::format("`{}` came with nfs-utils {}", option.substr(0, option.find('=')), since)};
  if (row != nullptr)
    return {index, "SF108", fmt::format("`{}` is wrong{}{}", option, row->what.empty() ? "" : ": ", row->what),
            "see exports(5) for the values that it takes"};
  return {index, "SF107",
          option.empty() ? "an empty option between two commas" : fmt::format("unknown option `{}`", option),
          hint_for_unknown(option)};
}

/// True if root of a client that does not use Kerberos is root here: not squashed, or squashed to user 0.
bool is_root(const Flavour& flavour, bool to_root) {
  return flavour.name == "sys" && (flavour.flags & k_all_squash) == 0 &&
         ((flavour.flags & k_root_squash) == 0 || to_root);
}

} // namespace

std::optional<OptionError> apply_options(Settings& settings, const std::vector<std::string>& options,
                                         std::string_view refused) {
  std::vector<std::size_t> active; // the flavours that a `sec=` of this list names
  std::optional<OptionError> first;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& option = options[i];
    const auto flag = flag_option(option);
    const auto* const row = value_option(option);
    const bool is_known = flag || (row != nullptr && has_known_words(*row, value_of(option)));
    if (!is_known || option == refused) {
      if (!first)
        first = explain_bad(i, option, is_known);
    } else if (row != nullptr && row->name == "sec") {
      active = add_flavours(settings, value_of(option));
    } else if (row != nullptr) {
      set_value(settings, row->name, value_of(option));
    } else {
      set_flag(settings.flags, flag->first->flag, flag->second);
      for (const auto index : active)
        if ((flag->first->flag & k_flavour_flags) != 0)
          set_flag(settings.security[index].flags, flag->first->flag, flag->second);
    }
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
  return std::ranges::any_of(security, [](const Flavour& flavour) { return (flavour.flags & k_read_only) == 0; });
}

bool Settings::root_is_root() const {
  const bool to_root = value("anonuid") == "0";
  return std::ranges::any_of(security, [&](const Flavour& flavour) { return is_root(flavour, to_root); });
}

bool Settings::any_program_is_root() const {
  const bool to_root = value("anonuid") == "0";
  return std::ranges::any_of(security, [&](const Flavour& flavour) {
    return is_root(flavour, to_root) && (flavour.flags & (k_insecure | k_read_only)) == k_insecure;
  });
}

bool Settings::everyone_is_root() const {
  return (value("anonuid") == "0" || value("anongid") == "0") &&
         std::ranges::any_of(security, [](const Flavour& flavour) {
           return (flavour.flags & (k_all_squash | k_read_only)) == k_all_squash;
         });
}

Settings settings_of(const std::vector<std::string>& options) {
  Settings settings;
  apply_options(settings, options);
  return in_force(std::move(settings));
}

std::optional<OptionError> find_bad_option(const std::vector<std::string>& options, std::string_view refused) {
  Settings settings;
  return apply_options(settings, options, refused);
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

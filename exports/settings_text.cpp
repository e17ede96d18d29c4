// Shows settings in words, for tables and for the differences between the desired settings and etab.
#include "exports/settings.hpp"

#include <fmt/format.h>
#include <utility>

namespace sharefs::exports {

namespace {

std::string name_of(const FlagOption& row, std::uint32_t flags) {
  if ((flags & row.flag) != 0)
    return std::string(row.set);
  return row.clear.empty() ? fmt::format("no {}", row.set) : std::string(row.clear);
}

std::string join_flavours(const Settings& settings) {
  std::string text;
  for (const auto& flavour : settings.security)
    text += (text.empty() ? "" : ":") + flavour.name;
  return text;
}

/// Returns "fsid=3" or "mountpoint"; for an option that is not given "no refer", or its default "anonuid=65534".
std::string text_of(const Settings& settings, std::string_view option) {
  const auto found = settings.values.find(option);
  if (found == settings.values.end())
    return option.starts_with("anon") ? fmt::format("{}=65534", option) : fmt::format("no {}", option);
  return found->second.empty() && option == "mountpoint" ? std::string(option)
                                                         : fmt::format("{}={}", option, found->second);
}

} // namespace

std::vector<std::string> differences(const Settings& wanted, const Settings& found) {
  std::vector<std::string> texts;
  if (wanted == found)
    return texts;
  const auto add_flags = [&](std::uint32_t want, std::uint32_t have, std::uint32_t among, std::string_view whose) {
    for (const auto& row : k_flag_options)
      if (!row.alias && (among & row.flag) != 0 && ((want ^ have) & row.flag) != 0)
        texts.push_back(fmt::format("{} instead of {}{}", name_of(row, have), name_of(row, want), whose));
  };
  add_flags(wanted.flags, found.flags, ~k_flavour_flags, "");
  for (const auto& want : wanted.security)
    for (const auto& have : found.security)
      if (want.name == have.name)
        add_flags(want.flags, have.flags, k_flavour_flags,
                  wanted.security.size() == 1 ? std::string() : fmt::format(" for sec={}", want.name));
  if (join_flavours(wanted) != join_flavours(found))
    texts.push_back(fmt::format("sec={} instead of sec={}", join_flavours(found), join_flavours(wanted)));
  auto given = wanted.values;
  given.insert(found.values.begin(), found.values.end());
  for (const auto& [option, value] : given)
    if (const auto want = text_of(wanted, option), have = text_of(found, option); want != have)
      texts.push_back(fmt::format("{} instead of {}", have, want));
  return texts;
}

std::string summary(const Settings& settings) {
  static const Settings k_usual = settings_of({});
  std::string text;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : ",") + std::string(word); };
  // `before` holds the flags that count if the word is left out.
  const auto add_flags = [&](std::uint32_t mine, std::uint32_t usual, std::uint32_t before, std::uint32_t among) {
    for (const auto& row : k_flag_options)
      if (!row.alias && (row.flag & among) != 0 &&
          (row.flag == k_read_only || (((mine ^ usual) | (mine ^ before)) & row.flag) != 0))
        add(name_of(row, mine));
  };
  const auto usual = k_usual.security.front().flags;
  const bool one = settings.security.size() == 1;
  if (one)
    add_flags(settings.security.front().flags, usual, usual, k_flavour_flags);
  add_flags(settings.flags, k_usual.flags, k_usual.flags, ~k_flavour_flags);
  if (one && settings.security.front().name != "sys")
    add("sec=" + settings.security.front().name);
  for (const auto& [option, value] : settings.values)
    add(text_of(settings, option));
  if (one)
    return text;
  auto before = usual; // a flavour begins with the flags of the one before it
  for (const auto& flavour : settings.security) {
    add("sec=" + flavour.name);
    add_flags(flavour.flags, usual, std::exchange(before, flavour.flags), k_flavour_flags);
  }
  return text;
}

std::string effective(const Settings& settings, const Flavour& flavour) {
  const auto flags = (settings.flags & ~k_flavour_flags) | (flavour.flags & k_flavour_flags);
  std::string text;
  for (std::uint32_t flag = k_read_only; flag <= k_sign_handles; flag <<= 1U)
    for (const auto& row : k_flag_options)
      if (row.flag == flag && !row.alias && ((flags & flag) != 0 || !row.clear.empty()))
        text += (text.empty() ? "" : ",") + name_of(row, flags);
  for (const auto& [option, value] : settings.values)
    if (!option.starts_with("anon"))
      text += "," + text_of(settings, option);
  for (const auto* option : {"anonuid", "anongid"})
    text += "," + text_of(settings, option);
  return text;
}

} // namespace sharefs::exports

// Settings in words: for tables, and for what differs between what was wanted and what etab says.
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

std::string name_of(const FlagOption& row, std::uint32_t flags) {
  if ((flags & row.flag) != 0)
    return std::string(row.set);
  return row.clear.empty() ? fmt::format("no {}", row.set) : std::string(row.clear);
}

std::string flavours(const Settings& settings) {
  std::string text;
  for (const auto& flavour : settings.security)
    text += (text.empty() ? "" : ":") + flavour.name;
  return text;
}

/// "fsid=3", "mountpoint", "no refer", "anonuid=65534" for one that is not given.
std::string text_of(const Settings& settings, std::string_view option) {
  const auto found = settings.values.find(option);
  if (found == settings.values.end())
    return option.starts_with("anon") ? fmt::format("{}=65534", option) : fmt::format("no {}", option);
  return found->second.empty() ? std::string(option) : fmt::format("{}={}", option, found->second);
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
  if (flavours(wanted) != flavours(found))
    texts.push_back(fmt::format("sec={} instead of sec={}", flavours(found), flavours(wanted)));
  auto given = wanted.values;
  given.insert(found.values.begin(), found.values.end());
  for (const auto& [option, value] : given)
    if (const auto want = text_of(wanted, option), have = text_of(found, option); want != have)
      texts.push_back(fmt::format("{} instead of {}", have, want));
  return texts;
}

std::string summary(const Settings& settings) {
  static const Settings k_usual = *settings_of({}, {});
  std::string text;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : ",") + std::string(word); };
  const auto add_flags = [&](std::uint32_t mine, std::uint32_t usual, std::uint32_t among) {
    for (const auto& row : k_flag_options)
      if (!row.alias && (row.flag & among) != 0 && (row.flag == k_read_only || ((mine ^ usual) & row.flag) != 0))
        add(name_of(row, mine));
  };
  const auto usual_flavour = k_usual.security.front().flags;
  const bool one = settings.security.size() == 1;
  if (one)
    add_flags(settings.security.front().flags, usual_flavour, k_flavour_flags);
  add_flags(settings.flags, k_usual.flags, ~k_flavour_flags);
  if (one && settings.security.front().name != "sys")
    add("sec=" + settings.security.front().name);
  for (const auto& [option, value] : settings.values)
    add(text_of(settings, option));
  if (!one)
    for (const auto& flavour : settings.security) {
      add("sec=" + flavour.name);
      add_flags(flavour.flags, usual_flavour, k_flavour_flags);
    }
  return text;
}

} // namespace sharefs::exports

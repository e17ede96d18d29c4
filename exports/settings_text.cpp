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

/// Every option with a value as text, "" for not given; in the order of exports(5).
std::vector<std::pair<std::string_view, std::string>> values(const Settings& settings) {
  std::string transport;
  for (const auto& mode : settings.transport)
    transport += (transport.empty() ? "" : ":") + mode;
  return {
      {"sec", flavours(settings)},
      {"fsid", settings.fsid ? std::to_string(*settings.fsid) : ""},
      {"fsid", settings.uuid},
      {"anonuid", std::to_string(settings.anonuid)},
      {"anongid", std::to_string(settings.anongid)},
      {"mountpoint", settings.mountpoint ? (settings.mountpoint->empty() ? "itself" : *settings.mountpoint) : ""},
      {"refer", settings.refer},
      {"replicas", settings.replicas},
      {"reexport", settings.reexport},
      {"xprtsec", transport},
  };
}

} // namespace

std::vector<std::string> differences(const Settings& wanted, const Settings& found) {
  std::vector<std::string> texts;
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
  const auto want = values(wanted);
  const auto have = values(found);
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i].second != have[i].second)
      texts.push_back(fmt::format("{} instead of {}",
                                  have[i].second.empty() ? fmt::format("no {}", have[i].first)
                                                         : fmt::format("{}={}", have[i].first, have[i].second),
                                  want[i].second.empty() ? fmt::format("no {}", want[i].first)
                                                         : fmt::format("{}={}", want[i].first, want[i].second)));
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
  const auto mine = values(settings);
  static const auto usual = values(k_usual);
  for (std::size_t i = one ? 0 : 1; i < mine.size(); ++i)
    if (mine[i].second != usual[i].second && !mine[i].second.empty())
      add(fmt::format("{}={}", mine[i].first, mine[i].second));
  if (!one)
    for (const auto& flavour : settings.security) {
      add("sec=" + flavour.name);
      add_flags(flavour.flags, usual_flavour, k_flavour_flags);
    }
  return text;
}

} // namespace sharefs::exports

// Settings in words: for tables, and for what differs between what was wanted and what etab says.
#include "exports/settings.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

struct FlagName {
  Flag flag;
  std::string_view set, clear;
};
constexpr std::array k_names{
    FlagName{k_read_only, "ro", "rw"},
    FlagName{k_async, "async", "sync"},
    FlagName{k_root_squash, "root_squash", "no_root_squash"},
    FlagName{k_all_squash, "all_squash", "no_all_squash"},
    FlagName{k_insecure, "insecure", "secure"},
    FlagName{k_no_subtree_check, "no_subtree_check", "subtree_check"},
    FlagName{k_write_delay, "wdelay", "no_wdelay"},
    FlagName{k_no_hide, "nohide", "hide"},
    FlagName{k_cross_mounts, "crossmnt", "nocrossmnt"},
    FlagName{k_insecure_locks, "insecure_locks", "secure_locks"},
    FlagName{k_no_acl, "no_acl", "acl"},
    FlagName{k_no_readdirplus, "nordirplus", "no nordirplus"},
    FlagName{k_security_label, "security_label", "no security_label"},
    FlagName{k_pnfs, "pnfs", "no_pnfs"},
    FlagName{k_sign_handles, "sign_fh", "no sign_fh"},
};

std::string_view name_of(const FlagName& row, std::uint32_t flags) {
  return (flags & row.flag) != 0 ? row.set : row.clear;
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
    for (const auto& row : k_names)
      if ((among & row.flag) != 0 && ((want ^ have) & row.flag) != 0)
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
  const Settings usual = *settings_of({}, {});
  std::string text;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : ",") + std::string(word); };
  const bool one = settings.security.size() == 1;
  if (one) {
    const auto flags = settings.security.front().flags;
    for (const auto& row : k_names)
      if ((row.flag & k_flavour_flags) != 0 &&
          (row.flag == k_read_only || ((flags ^ usual.security.front().flags) & row.flag) != 0))
        add(name_of(row, flags));
  }
  for (const auto& row : k_names)
    if ((row.flag & k_flavour_flags) == 0 && ((settings.flags ^ usual.flags) & row.flag) != 0)
      add(name_of(row, settings.flags));
  const auto mine = values(settings);
  const auto theirs = values(usual);
  for (std::size_t i = one ? 0 : 1; i < mine.size(); ++i)
    if (mine[i].second != theirs[i].second && !mine[i].second.empty())
      add(fmt::format("{}={}", mine[i].first, mine[i].second));
  if (!one)
    for (const auto& flavour : settings.security) {
      add("sec=" + flavour.name);
      for (const auto& row : k_names)
        if ((row.flag & k_flavour_flags) != 0 &&
            (row.flag == k_read_only || ((flavour.flags ^ usual.security.front().flags) & row.flag) != 0))
          add(name_of(row, flavour.flags));
    }
  return text;
}

} // namespace sharefs::exports

// Finds rights that clients get by an entry that does not name them.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/diagnose.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace sharefs::exports {

namespace {

using Found = std::map<std::string, Diagnoses>;

/// Reports the fault at `entry`, and also at `cause` if that stands in another file, whose author has to know of it.
void report(Found& by_file, Severity severity, const std::string& code, const Origin& entry, const Origin& cause,
            const std::string& message, const std::string& hint) {
  by_file[entry.file].push_back(at(severity, code, entry, message, hint));
  if (cause.file != entry.file)
    by_file[cause.file].push_back(at(severity, code, cause, fmt::format("{} ({})", message, entry.text()), hint));
}

// 1. A host that shares an address with another host

/// True if one of the addresses has the same version of IP. A name with an IPv4 and an IPv6 address is mostly one
/// machine; a name with two addresses of the same version may be two machines.
bool same_version(const std::string& one, const std::vector<std::string>& others) {
  const auto is_v6 = [](const std::string& address) { return address.find(':') != std::string::npos; };
  return std::ranges::any_of(others, [&](const std::string& other) { return is_v6(other) == is_v6(one); });
}

/// Returns the addresses of a host name or an address; empty if they are not known.
std::vector<std::string> addresses_of(std::string_view client, const HostFacts& facts) {
  if (const auto fact = facts.names.find(client); fact != facts.names.end())
    return fact->second.addresses;
  const auto address = canonical_address(client);
  return kind_of(client) == ClientKind::host && !address.empty() ? std::vector{address} : std::vector<std::string>();
}

std::vector<std::string> missing_in(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  std::vector<std::string> missing;
  std::ranges::copy_if(some, std::back_inserter(missing),
                       [&](const std::string& one) { return std::ranges::find(all, one) == all.end(); });
  return missing;
}

// 2. A directory below another one of the same file system

/// Returns only those settings that decide what a client may do, without those of the directory.
Settings client_rights(Settings settings) {
  settings.flags &= k_async;
  std::erase_if(settings.values,
                [](const auto& value) { return !value.first.starts_with("anon") && value.first != "xprtsec"; });
  return settings;
}

bool gives_more(const Settings& given, const Settings& written) {
  if (given.value("xprtsec") != written.value("xprtsec") && !written.value("xprtsec").empty())
    return true;
  for (const auto* option : {"anonuid", "anongid"})
    if (given.value(option) != written.value(option) && !given.value(option).empty())
      return true;
  return std::ranges::any_of(given.security, [&](const Flavour& flavour) {
    const auto same = std::ranges::find(written.security, flavour.name, &Flavour::name);
    constexpr std::uint32_t k_less = k_read_only | k_root_squash | k_all_squash;
    return same == written.security.end() || (same->flags & ~flavour.flags & k_less) != 0 ||
           (flavour.flags & ~same->flags & k_insecure) != 0;
  });
}

/// Entries by client; a network is named by its lowest address and prefix length.
using ByClient = std::map<std::string, const Export*, std::less<>>;

std::string key_of(const Network& network) {
  return fmt::format("{}/{}", network.first(), network.prefix());
}

void add(ByClient& clients, const Export& entry) {
  const auto network =
      kind_of(entry.client) == ClientKind::network ? parse_network(entry.client) : tl::make_unexpected(NetworkError{});
  clients.emplace(network && network->contiguous() ? key_of(*network) : entry.client, &entry);
}

/// Returns the entry of the outer directory that decides the rights of a client of the inner one: the entry of the same
/// client, of the narrowest network around it, or of everyone.
const Export* find_deciding(const ByClient& outer, const std::string& client) {
  const auto named = [&](const std::string& name) {
    const auto found = outer.find(name);
    return found == outer.end() ? nullptr : found->second;
  };
  if (const auto* const same = named(client); same != nullptr || kind_of(client) == ClientKind::kerberos)
    return same;
  if (auto network = parse_network(client); network && network->contiguous())
    for (auto bit = static_cast<unsigned>(network->prefix()); bit > 0; --bit) {
      if (const auto* const around = named(key_of(*network)); around != nullptr)
        return around;
      network->mask.at((bit - 1) / 8) &= static_cast<std::uint8_t>(~(0x80U >> ((bit - 1) % 8)));
    }
  return named("*");
}

void diagnose_inner(const Export& entry, const Export& outer, Found& by_file) {
  const auto mine = client_rights(entry.settings);
  const auto given = client_rights(outer.settings);
  if (given == mine)
    return;
  report(by_file, gives_more(given, mine) ? Severity::error : Severity::warning, "SF143", entry.origin, outer.origin,
         fmt::format("`{}` lies in `{}` on one file system: {} of NFS version 4 get what `{}` has there at {} ({})",
                     entry.directory, outer.directory,
                     entry.client == "*" ? "clients" : fmt::format("`{}`", entry.client), outer.client,
                     outer.origin.text(), join(differences(mine, given), ", ")),
         fmt::format("give both the same options, or give `{}` a file system of its own", entry.directory));
}

void diagnose_nested(const ExpectedEtab& expected, const HostFacts& facts, Found& by_file) {
  std::map<std::string_view, std::string_view> mounts; // by directory: where its file system is mounted
  for (const auto& [written, entry] : facts.directories)
    if (entry.kind == sys::EntryKind::directory && !entry.mount.empty())
      mounts[entry.resolved] = entry.mount;
  std::map<std::string_view, ByClient> by_directory;
  for (const auto& entry : expected.entries)
    if (mounts.contains(entry.directory))
      add(by_directory[entry.directory], entry);
  for (const auto& entry : expected.entries) {
    const auto mount = mounts.find(entry.directory);
    const Export* outermost = nullptr; // NFS version 4 walks down from there and keeps its options
    for (auto path = entry.directory; mount != mounts.end() && path != "/" && path != mount->second;) {
      path = parent_path(path);
      if (const auto outer = by_directory.find(path); outer != by_directory.end() && mounts.at(path) == mount->second)
        if (const auto* const found = find_deciding(outer->second, entry.client))
          outermost = found;
    }
    if (outermost != nullptr)
      diagnose_inner(entry, *outermost, by_file);
  }
}

} // namespace

Diagnoses diagnose_mistaken(const Export& entry, const Export& in_etab, const HostFacts& facts) {
  const auto mine = addresses_of(entry.client, facts);
  const auto theirs = addresses_of(in_etab.client, facts);
  if (mine.empty() || theirs.empty())
    return {};
  const auto gains = missing_in(theirs, mine);
  const auto loses = missing_in(mine, theirs);
  if (gains.empty() && loses.empty())
    return {};
  std::vector<std::string> words;
  for (const auto& address : mine)
    words.push_back(fmt::format("{}/{}", address, address.find(':') == std::string::npos ? 32 : 128));
  const bool certain = std::ranges::any_of(gains, [&](const std::string& gain) { return same_version(gain, mine); });
  return {at(certain ? Severity::error : Severity::warning, "SF144", entry.origin,
             fmt::format("`{}` is {} exported to {}: exportfs takes `{}` for `{}`, with which it shares an address",
                         entry.directory, gains.empty() ? "not" : "also", join(gains.empty() ? loses : gains, ", "),
                         entry.client, in_etab.client),
             fmt::format("write `{}`, which exportfs takes for no other {}", join(words, " "),
                         words.size() == 1 ? "host" : "hosts"))};
}

void diagnose_reach(const ExpectedEtab& expected, const HostFacts& facts, std::map<std::string, Diagnoses>& by_file) {
  diagnose_nested(expected, facts, by_file);
  for (const auto position : expected.unreadable) {
    const auto& entry = expected.entries[position];
    by_file[entry.origin.file].push_back(at(
        Severity::error, "SF141", entry.origin,
        fmt::format("exportfs writes the export of `{}` to `{}` to etab as mountd cannot read it: it is lost, or read "
                    "as another one, and those that stand behind it in etab are lost",
                    entry.directory, entry.client),
        "write shorter values, without blanks, quotes, backslashes and parentheses; or the address of the host"));
  }
}

} // namespace sharefs::exports

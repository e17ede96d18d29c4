// What clients get by other entries than the one that names them.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/diagnose_parts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

using Found = std::map<std::string, Diagnoses>;

/// At `entry`, and at `cause` if that stands in another file: whoever writes it has to hear of it.
void report(Found& by_file, Severity severity, const std::string& code, const Origin& entry, const Origin& cause,
            const std::string& message, const std::string& hint) {
  by_file[entry.file].push_back(at(severity, code, entry, message, hint));
  if (cause.file != entry.file)
    by_file[cause.file].push_back(at(severity, code, cause, fmt::format("{} ({})", message, entry.text()), hint));
}

// 1. A host with an address of another one

/// One that has an IPv4 and an IPv6 address is mostly one machine; one with two of a kind may be two.
bool same_version(const std::vector<std::string>& some, const std::vector<Network>& others) {
  return std::ranges::any_of(some, [&](const std::string& address) {
    const auto network = parse_network(address);
    return !network || std::ranges::any_of(others, [&](const Network& other) { return other.v6 == network->v6; });
  });
}

void diagnose_mistaken(const ExpectedEtab& expected, const HostFacts& facts, Found& by_file) {
  const Clients clients(facts);
  for (const auto& [entry, known, known_as, name, gains, loses] : expected.mistaken) {
    const auto mine = clients.networks(entry.client);
    std::vector<std::string> words;
    for (const auto& network : mine)
      words.push_back(fmt::format("{}/{}", network.first(), network.v6 ? 128 : 32));
    const auto hint = fmt::format("write {}, which exportfs takes for {}",
                                  words.empty() ? "addresses" : fmt::format("`{}`", join(words, " ")),
                                  words.size() == 1 ? "no other host" : "no other hosts");
    const auto cause = known == entry.origin
                           ? fmt::format("etab has `{}` for `{}`, which has other addresses", name, entry.client)
                           : fmt::format("exportfs takes `{}` for `{}` at {}, with which it shares an address",
                                         entry.client, known_as, known.text());
    if (!gains.empty())
      report(by_file, same_version(gains, mine) ? Severity::error : Severity::warning, "SF144", entry.origin, known,
             fmt::format("`{}` is also exported to {}: {}", entry.directory, join(gains, ", "), cause), hint);
    else
      report(by_file, Severity::warning, "SF144", entry.origin, known,
             fmt::format("`{}` is not exported to {}: {}", entry.directory, join(loses, ", "), cause), hint);
  }
}

// 2. A directory below another one of the same file system

/// What a client may do, without what only concerns the directory.
Settings rights(Settings settings) {
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

/// The clients of one directory, so that those of another can be found among them.
struct Audience {
  std::vector<const Export*> all;
  std::map<std::string, std::size_t, std::less<>> by_name;
  NetworkMap networks; ///< hosts too
  std::optional<std::size_t> everyone;
  std::vector<std::size_t> vague;    ///< wildcards and netgroups, one for each kind of rights
  std::vector<std::size_t> distinct; ///< one for each kind of rights

  void add(const Export& entry, const Clients& clients) {
    const auto number = all.size();
    all.push_back(&entry);
    by_name.emplace(entry.client, number);
    const auto kind = kind_of(entry.client);
    if (kind == ClientKind::everyone)
      everyone = number;
    for (const auto& network : clients.networks(entry.client))
      networks.add(network, number);
    const auto is_new = [&](const std::vector<std::size_t>& list) {
      return std::ranges::none_of(
          list, [&](std::size_t other) { return rights(all[other]->settings) == rights(entry.settings); });
    };
    if ((kind == ClientKind::wildcard || kind == ClientKind::netgroup) && is_new(vague))
      vague.push_back(number);
    if (kind != ClientKind::kerberos && is_new(distinct))
      distinct.push_back(number);
  }
};

/// An entry of a directory above that some or all of a client's machines come by.
struct Way {
  std::size_t number = 0;
  bool certain = true;
  bool whole = false; ///< all of them
};

std::vector<Way> ways_of(const Export& entry, const Audience& above, const Clients& clients) {
  std::vector<Way> ways;
  if (const auto same = above.by_name.find(entry.client); same != above.by_name.end())
    return {{same->second, true, true}};
  const auto kind = kind_of(entry.client);
  if (kind == ClientKind::kerberos)
    return {};
  if (kind == ClientKind::everyone) { // some of them are those
    for (const auto number : above.distinct)
      ways.push_back({number, true, false});
    return ways;
  }
  const auto mine = clients.networks(entry.client);
  bool covered = !mine.empty();
  for (const auto& network : mine) {
    const auto around = above.networks.around(network);
    for (const auto number : above.networks.inside(network))
      ways.push_back({number, true, false});
    if (around.empty())
      covered = false;
    else
      ways.push_back({around.front(), true, false});
  }
  if (covered) { // mountd takes a network before a wildcard
    ways.back().whole = true;
    return ways;
  }
  for (const auto number : above.vague)
    ways.push_back({number, false, false});
  if (above.everyone)
    ways.push_back({*above.everyone, true, true});
  return ways;
}

/// Reports the worst of what the clients of `entry` get by the directory above; true if they all come by it.
bool diagnose_below(const Export& entry, const std::string& parent, const Audience& above, const Clients& clients,
                    bool& reported, Found& by_file) {
  const auto mine = rights(entry.settings);
  const Export* worst = nullptr;
  auto severity = Severity::warning;
  bool certain = true;
  bool whole = false;
  for (const auto& way : ways_of(entry, above, clients)) {
    whole = whole || way.whole;
    const auto& other = *above.all[way.number];
    if (rights(other.settings) == mine)
      continue;
    const auto now = way.certain && gives_more(rights(other.settings), mine) ? Severity::error : Severity::warning;
    if (worst != nullptr && (severity == Severity::error || now == Severity::warning))
      continue;
    worst = &other;
    severity = now;
    certain = way.certain;
  }
  if (worst != nullptr && !reported) {
    reported = true;
    report(by_file, severity, "SF143", entry.origin, worst->origin,
           fmt::format("`{}` lies in `{}` on one file system: {} of NFS version 4 {} what `{}` has there at {} ({})",
                       entry.directory, parent, entry.client == "*" ? "clients" : fmt::format("`{}`", entry.client),
                       certain ? "get" : "may get", worst->client, worst->origin.text(),
                       join(differences(mine, rights(worst->settings)), ", ")),
           fmt::format("give both the same options, or give `{}` a file system of its own", entry.directory));
  }
  return whole;
}

void diagnose_nested(const ExpectedEtab& expected, const HostFacts& facts, Found& by_file) {
  std::map<std::string_view, std::string_view> mounts; // by directory: where its file system is mounted
  for (const auto& [written, entry] : facts.directories)
    if (entry.kind == sys::EntryKind::directory && !entry.mount.empty())
      mounts[entry.resolved] = entry.mount;
  const Clients clients(facts);
  std::map<std::string, Audience, std::less<>> audiences;
  for (const auto& entry : expected.entries)
    if (mounts.contains(entry.directory))
      audiences[entry.directory].add(entry, clients);
  for (const auto& entry : expected.entries) {
    const auto mount = mounts.find(entry.directory);
    if (mount == mounts.end())
      continue;
    std::vector<std::string> above; // outermost last
    for (auto path = entry.directory; path != "/" && path != mount->second;) {
      path = parent_path(path);
      if (audiences.contains(path) && mounts.at(path) == mount->second)
        above.push_back(path);
    }
    bool reported = false;
    for (auto parent = above.rbegin(); parent != above.rend(); ++parent)
      if (diagnose_below(entry, *parent, audiences[*parent], clients, reported, by_file))
        break; // version 4 comes from the outermost, and stays with its options
  }
}

// 5. Lines of etab that mountd does not read as they were meant

/// As fprintpath() of nfs-utils writes a path, and nothing else.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : text)
    out += static_cast<unsigned char>(byte) <= ' ' || byte == '\x7f' || byte == '"' || byte == '\\' || byte == '#'
               ? fmt::format("\\{:03o}", static_cast<unsigned char>(byte))
               : std::string(1, byte);
  return out;
}

std::string etab_line(const Export& entry) {
  auto settings = entry.settings;
  for (const auto* option : {"refer", "replicas"})
    if (const auto found = settings.values.find(option); found != settings.values.end())
      found->second = escaped(found->second);
  auto line =
      fmt::format("{}\t{}({}", escaped(entry.directory), entry.client, effective(settings, settings.security.front()));
  for (const auto& flavour : entry.settings.security) {
    line += ",sec=" + flavour.name;
    for (const auto& row : k_flag_options)
      if ((row.flag & k_flavour_flags) != 0)
        line += fmt::format(",{}", (flavour.flags & row.flag) != 0 ? row.set : row.clear);
  }
  return line + ")\n";
}

/// Can the line be anything but readable? Most cannot, and there may be tens of thousands.
bool is_plain(const Export& entry) {
  constexpr std::string_view k_special = " \t\n\v\f\r\"\\()#";
  constexpr std::size_t k_words = 200; // of options without values
  constexpr std::size_t k_flavour_words = 64;
  std::size_t size = entry.client.size() + k_words + k_flavour_words * entry.settings.security.size();
  for (const auto& [option, value] : entry.settings.values) {
    size += option.size() + value.size() + 2;
    if (value.find_first_of(k_special) != std::string::npos)
      return false;
  }
  return size < k_client_limit && entry.client.find_first_of(k_special) == std::string::npos;
}

void diagnose_lines(const ExpectedEtab& expected, Found& by_file) {
  for (const auto& entry : expected.entries) {
    if (is_plain(entry) || entry.client.find_first_of(" \t\n\v\f\r") != std::string::npos)
      continue; // the latter: SF112
    const auto line = etab_line(entry);
    const auto read = parse(line + "/next *()\n", "etab");
    if (read.complete && read.exports.size() == 2 && read.exports[0].directory == entry.directory &&
        read.exports[0].client == entry.client && read.exports[0].settings == entry.settings)
      continue;
    const bool longer = line.size() - line.find('\t') > k_client_limit;
    by_file[entry.origin.file].push_back(at(
        Severity::error, "SF141", entry.origin,
        fmt::format("exportfs writes {} to etab as mountd cannot read it: it loses this export, and those that stand "
                    "behind it in etab",
                    longer ? fmt::format("{} bytes of client and options", line.size() - line.find('\t') - 2)
                           : fmt::format("the options of `{}`", entry.client)),
        longer ? "shorten the client or its values"
               : "write the values without blanks, quotes, backslashes and parentheses"));
  }
}

} // namespace

void diagnose_reach(const ExpectedEtab& expected, const HostFacts& facts, std::map<std::string, Diagnoses>& by_file) {
  diagnose_mistaken(expected, facts, by_file);
  diagnose_nested(expected, facts, by_file);
  diagnose_lines(expected, by_file);
}

} // namespace sharefs::exports

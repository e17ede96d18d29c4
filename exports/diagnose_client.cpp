// Checks one client of one line: its name and its rights.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

/// Reports a name of digits that exportfs does not take for an address, but gives to the resolver, which may know it as
/// a short form of an address.
Diagnosis diagnose_odd_address(const Export& entry) {
  in_addr address{};
  if (::inet_aton(entry.client.c_str(), &address) == 0)
    return at(Severity::error, "SF105", entry.origin,
              fmt::format("`{}` looks like an address, but is none: exportfs takes it for a host name, which does not "
                          "resolve",
                          entry.client),
              "correct the address");
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return at(Severity::warning, "SF105", entry.origin,
            fmt::format("`{}` is a short form of the address {}", entry.client, text.data()),
            fmt::format("write `{}`", text.data()));
}

Diagnoses diagnose_network(const Export& entry) {
  const auto network = parse_network(entry.client);
  if (!network) {
    const auto& error = network.error();
    return {at(Severity::error, error.zero ? "SF104" : "SF105", entry.origin,
               error.zero ? error.message : error.message + "; exportfs drops the entry",
               error.zero ? "write `*` to say that everyone is meant" : "correct the network")};
  }
  if (!network->contiguous())
    return {
        at(Severity::warning, "SF105", entry.origin,
           fmt::format("the mask of `{}` is not a row of ones and then zeros: the addresses that match are no range",
                       entry.client),
           "write a prefix length, as `/24`")};
  if (!network->has_host_bits())
    return {};
  const auto host = entry.client.substr(0, entry.client.find('/'));
  return {at(
      Severity::warning, "SF103", entry.origin,
      fmt::format("`{}` is not one host but the network {}-{}: {} addresses", entry.client, network->first(),
                  network->last(), network->count()),
      fmt::format("write `{}` for the host, or `{}/{}` for the network", host, network->first(), network->prefix()))};
}

bool is_bracketed_address(std::string_view name) {
  const auto close = name.find(']');
  return name.starts_with('[') && close != std::string_view::npos &&
         name.substr(0, close).find(':') != std::string_view::npos;
}

/// True for a wildcard that has only the characters of addresses, as `10.0.0.*`.
bool is_address_wildcard(std::string_view name) {
  return name.find_first_of("0123456789") != std::string_view::npos && name.find('.') != std::string_view::npos &&
         std::ranges::all_of(
             name, [](char byte) { return std::string_view("0123456789.*?[]-").find(byte) != std::string_view::npos; });
}

std::string network_of_wildcard(std::string_view name) {
  auto parts = split(name, '.');
  const auto rest = std::ranges::find_if_not(parts, [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
  });
  const auto fixed = rest - parts.begin();
  const bool is_network = parts.size() == 4 && fixed > 0 && fixed < 4 &&
                          std::all_of(rest, parts.end(), [](const auto& part) { return part == "*"; });
  if (!is_network)
    return "write the network, as `192.168.1.0/24`";
  std::fill(rest, parts.end(), "0");
  return fmt::format("write `{}/{}`", join(parts, "."), fixed * 8);
}

/// True for a client that every machine is, also where it is no `*`: a wildcard of nothing but stars matches each host
/// that has a name, and mountd masks all of an address away by a mask of zeros.
bool reaches_all(std::string_view client) {
  if (kind_of(client) == ClientKind::wildcard)
    return client.find_first_not_of('*') == std::string_view::npos;
  const auto network = parse_network(client);
  return kind_of(client) == ClientKind::network && !network && network.error().all;
}

} // namespace

Diagnoses diagnose_client(const Export& entry) {
  const auto& name = entry.client;
  const auto kind = kind_of(name);
  if (name.find(',') != std::string::npos)
    return {at(Severity::error, "SF112", entry.origin,
               fmt::format("`{}` is read as the name of one client: {}", name,
                           kind == ClientKind::host || kind == ClientKind::network
                               ? "exportfs drops it, mostly silently"
                               : "it is exported, and no client matches it"),
               "clients are separated by spaces, each with its own options")};
  if (kind == ClientKind::network)
    return diagnose_network(entry);
  if (kind == ClientKind::wildcard && is_bracketed_address(name))
    return {at(Severity::error, "SF113", entry.origin,
               fmt::format("`{}` is a wildcard for names, not an IPv6 address: it matches no client", name),
               "write the address without square brackets")};
  if (kind == ClientKind::wildcard && is_address_wildcard(name))
    return {at(Severity::warning, "SF114", entry.origin,
               fmt::format("`{}` is matched against host names, not against addresses", name),
               network_of_wildcard(name))};
  if (kind == ClientKind::host && canonical_address(name).empty() && looks_like_address(name))
    return {diagnose_odd_address(entry)};
  return {};
}

Diagnoses diagnose_rights(const Export& entry) {
  const auto& settings = entry.settings;
  const auto kind = reaches_all(entry.client) ? ClientKind::everyone : kind_of(entry.client);
  const bool many = kind == ClientKind::everyone || kind == ClientKind::network || kind == ClientKind::wildcard;
  const bool user = settings.value("anonuid") == "0";
  const std::string_view zero = user ? "anonuid=0" : "anongid=0";
  Diagnoses found;
  if (many && settings.everyone_is_root())
    found.push_back(at(Severity::warning, "SF137", entry.origin,
                       fmt::format("every user of {} is {} here (`all_squash,{}`, rw)",
                                   kind == ClientKind::everyone ? "any machine" : fmt::format("`{}`", entry.client),
                                   user ? "root" : "in root's group", zero),
                       fmt::format("make a user for the files, and give its number instead of `{}`", zero)));
  if (kind != ClientKind::everyone || !settings.root_is_root())
    return found;
  const std::string_view option = user ? "anonuid=0" : "no_root_squash";
  if (settings.any_program_is_root())
    found.push_back(at(Severity::error, "SF120", entry.origin,
                       fmt::format("everyone is root here: with `{}` and `insecure` any program of any user that "
                                   "reaches this server can read and write every file",
                                   option),
                       fmt::format("name the clients, or remove `{}`", option)));
  else
    found.push_back(at(Severity::warning, "SF119", entry.origin,
                       fmt::format("root of any machine that reaches this server is root here (`{}`, {})", option,
                                   settings.writable() ? "rw" : "ro"),
                       fmt::format("name the clients, or remove `{}`", option)));
  return found;
}

} // namespace sharefs::exports

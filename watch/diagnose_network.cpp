#include "base/text.hpp"
#include "sys/identity/own_host.hpp"
#include "watch/network.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::watch {

namespace {

constexpr std::uint64_t k_usual_port = 2049;
/// Headers of IP and TCP with their options: what a frame holds beside a segment, at most.
constexpr std::uint64_t k_most_headers = 40 + 20 + 40;

bool is_in(const std::string& address, const Subnet& subnet) {
  const auto one = sys::address_bytes(address), own = sys::address_bytes(subnet.address);
  if (!one || !own || one->size() != own->size() || subnet.bits == 0 || subnet.bits > one->size() * 8)
    return false;
  const auto whole = subnet.bits / 8, rest = subnet.bits % 8;
  if (one->compare(0, whole, *own, 0, whole) != 0)
    return false;
  const auto bits = [&](const std::string& bytes) { return static_cast<unsigned char>(bytes[whole]) >> (8U - rest); };
  return rest == 0 || bits(*one) == bits(*own);
}

const Interface* interface_named(const Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.interfaces, name, &Interface::name);
  return found == network.interfaces.end() ? nullptr : &*found;
}

/// Another interface of whose network `address` is a part.
const Interface* other_way(const Network& network, const std::string& address, const Interface& used) {
  const auto found = std::ranges::find_if(network.interfaces, [&](const Interface& one) {
    return one.up && one.name != used.name &&
           std::ranges::any_of(one.subnets, [&](const Subnet& subnet) { return is_in(address, subnet); });
  });
  return found == network.interfaces.end() ? nullptr : &*found;
}

std::uint64_t port_of(const Measured& one) {
  std::uint64_t port = 0;
  for (const char digit : one.statistics.option("port"))
    port = digit >= '0' && digit <= '9' && port < 100'000 ? port * 10 + static_cast<unsigned>(digit - '0') : port;
  return port == 0 ? k_usual_port : port;
}

std::string speed_of(const Interface& one) {
  return one.speed == 0 ? one.name : fmt::format("{} ({} Mbit/s)", one.name, one.speed);
}

/// SF709: the packets are smaller than this host's interface would have them.
std::optional<Diagnosis> diagnose_size(const Measured& one, const Route& route, const Interface& used,
                                       const Network& network) {
  const auto about = [&](std::string message, std::string hint) {
    return Diagnosis{Severity::warning, "SF709", one.statistics.target, std::move(message), std::move(hint), ""};
  };
  if (route.mtu > 0 && route.mtu < used.mtu)
    return about(
        fmt::format("the way to {} holds packets of {} bytes, but {} has an MTU of {}", one.address, route.mtu,
                    used.name, used.mtu),
        fmt::format("`ip route get {}` has it from a router on the way, or from the routing table: make the MTU "
                    "the same all the way",
                    one.address));
  for (const auto& connection : network.connections)
    if (connection.address == one.address && connection.port == port_of(one) &&
        connection.mss + k_most_headers < connection.advertised)
      return about(
          fmt::format("segments of {} bytes are sent to {}, but {} (MTU {}) takes {}: the server's interface "
                      "has a smaller MTU, or a link on the way",
                      connection.mss, one.address, used.name, used.mtu, connection.advertised),
          fmt::format("compare `ip link` here and on the server; `ping -M do -s {} {}` fails where it does not fit",
                      used.mtu - 28, one.address));
  return std::nullopt;
}

/// SF710: there is a way to the same server that is provably more direct, or faster.
std::optional<Diagnosis> diagnose_way(const Measured& one, const Route& route, const Interface& used,
                                      const Network& network) {
  const auto about = [&](std::string message, std::string hint) {
    return Diagnosis{Severity::warning, "SF710", one.statistics.target, std::move(message), std::move(hint), ""};
  };
  const auto host = one.statistics.source.substr(0, one.statistics.source.find(":/"));
  if (const auto known = network.addresses.find(host); known != network.addresses.end() && !route.gateway.empty())
    for (const auto& address : known->second)
      if (const auto* other = other_way(network, address, used); other != nullptr && address != one.address)
        return about(
            fmt::format("it goes by {} and the router {} to {}, but {} is also {}, which is in the network of {}",
                        speed_of(used), route.gateway, one.address, host, address, speed_of(*other)),
            fmt::format("mount it from {}, once all mounts of this server are unmounted", address));
  if (const auto* other = other_way(network, one.address, used);
      other != nullptr && (!route.gateway.empty() || (used.speed > 0 && other->speed > used.speed)))
    return about(
        fmt::format("it goes by {}{} to {}, which is in the network of {} as well", speed_of(used),
                    route.gateway.empty() ? "" : " and the router " + route.gateway, one.address, speed_of(*other)),
        fmt::format("see `ip route get {}` and `ip rule`: two interfaces in one network need metrics", one.address));
  return std::nullopt;
}

} // namespace

Diagnoses diagnose_network(const Reading& reading, const Network& network) {
  Diagnoses found;
  std::set<std::string> said; // servers: of a thousand mounts of one it is said once
  for (const auto& one : reading.mounts) {
    const auto route = network.routes.find(one.address);
    const auto* used = route == network.routes.end() ? nullptr : interface_named(network, route->second.interface);
    if (used == nullptr || used->name == "lo" || !said.insert(one.address).second)
      continue;
    if (auto size = diagnose_size(one, route->second, *used, network))
      found.push_back(std::move(*size));
    if (auto way = diagnose_way(one, route->second, *used, network))
      found.push_back(std::move(*way));
  }
  return found;
}

} // namespace sharefs::watch

#pragma once
// Which way the mounts' requests go: by iproute2's `ip` and `ss`, which know what the kernel has decided. What they do
// not say is not known: of a host without them nothing is said.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"
#include "watch/performance.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::watch {

struct Subnet {
  std::string address; ///< of this host
  unsigned bits = 0;
  friend bool operator==(const Subnet&, const Subnet&) = default;
};

struct Interface {
  std::string name;
  bool up = false;
  std::uint64_t mtu = 0;
  std::uint64_t speed = 0; ///< Mbit/s; 0: not known (virtual ones say nothing)
  std::vector<Subnet> subnets;
  friend bool operator==(const Interface&, const Interface&) = default;
};

struct Route {
  std::string interface;
  std::string gateway;   ///< empty: directly connected
  std::uint64_t mtu = 0; ///< of the way, where a router has said so or somebody has set it; 0: the interface's
  friend bool operator==(const Route&, const Route&) = default;
};

/// Of a TCP connection that is there, the kernel's own among them.
struct Connection {
  std::string address; ///< of the other end
  std::uint16_t port = 0;
  std::uint64_t mss = 0;        ///< bytes of a segment that is sent
  std::uint64_t advertised = 0; ///< that this host takes, by its interface
  friend bool operator==(const Connection&, const Connection&) = default;
};

struct Network {
  std::vector<Interface> interfaces;
  std::map<std::string, Route> routes; ///< by the server's address
  std::vector<Connection> connections;
  std::map<std::string, std::vector<std::string>> addresses; ///< of servers that mounts know by name
};

/// Of the servers of these mounts, at most k_most_servers, and of names as long as all answers come quickly.
Network probe_network(sys::System& system, const Reading& reading);
inline constexpr std::size_t k_most_servers = 32;

/// Output of `ip -json -batch` with `address show` and `route get ADDRESS`: an array for each. What is not understood
/// is passed over.
void parse_ip(std::string_view text, Network& network);
/// Output of `ss -tinHO state established`.
std::vector<Connection> parse_connections(std::string_view text);

/// SF709, SF710
Diagnoses diagnose_network(const Reading& reading, const Network& network);

} // namespace sharefs::watch

#include "watch/network.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"

using namespace sharefs;
using namespace sharefs::watch;

namespace {

Measured mounted_from(const std::string& source, const std::string& address) {
  Measured one;
  one.statistics.source = source;
  one.statistics.target = "/data/share";
  one.statistics.options = "rw,vers=4.2,port=0";
  one.address = address;
  return one;
}

/// eth0 with a router and the management network, ib0 with the fast one.
Network two_networks() {
  Network network;
  network.interfaces = {{"lo", true, 65536, 0, {}},
                        {"eth0", true, 1500, 1000, {{"192.168.0.2", 24}, {"fd00:0:0:1::2", 64}}},
                        {"ib0", true, 9000, 100'000, {{"10.1.7.2", 20}}}};
  return network;
}

Diagnoses of(const Measured& one, const Network& network) {
  Reading reading;
  reading.mounts = {one};
  return diagnose_network(reading, network);
}

} // namespace

TEST_CASE("a mount on the straight way has nothing to be said") {
  auto network = two_networks();
  network.routes["10.1.0.1"] = {"ib0", "", 0};
  network.connections = {{"10.1.0.1", 2049, 8948, 8948}};
  network.addresses["storage1"] = {"10.1.0.1", "192.168.0.1"};
  CHECK(of(mounted_from("storage1:/srv", "10.1.0.1"), network).empty());
  CHECK(of(mounted_from("storage1:/srv", "10.9.0.1"), network).empty()); // no route is known
  CHECK(of(mounted_from("storage1:/srv", "10.1.0.1"), {}).empty());
  CHECK(diagnose_network(Reading{}, network).empty());
}

TEST_CASE("a way with a smaller MTU than the interface") {
  auto network = two_networks();
  network.routes["10.1.0.1"] = {"ib0", "", 1500};
  const auto found = of(mounted_from("10.1.0.1:/srv", "10.1.0.1"), network);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF709");
  CHECK(found[0].subject == "/data/share");
  CHECK(found[0].message == "the way to 10.1.0.1 holds packets of 1500 bytes, but ib0 has an MTU of 9000");
  network.routes["10.1.0.1"].mtu = 9000;
  CHECK(of(mounted_from("10.1.0.1:/srv", "10.1.0.1"), network).empty());
}

TEST_CASE("a server that takes smaller segments than this host") {
  auto network = two_networks();
  network.routes["10.1.0.1"] = {"ib0", "", 0};
  network.connections = {{"10.1.0.1", 22, 1448, 8948}, {"10.1.0.9", 2049, 1448, 8948}};
  CHECK(of(mounted_from("10.1.0.1:/srv", "10.1.0.1"), network).empty()); // of another service, of another server
  network.connections.push_back({"10.1.0.1", 2049, 1448, 8948});
  const auto found = of(mounted_from("10.1.0.1:/srv", "10.1.0.1"), network);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF709");
  CHECK(found[0].message.find("segments of 1448 bytes") != std::string::npos);
  CHECK(found[0].hint.find("ping -M do -s 8972 10.1.0.1") != std::string::npos);
  // Options of TCP are no other MTU.
  network.connections.back().mss = 8936;
  CHECK(of(mounted_from("10.1.0.1:/srv", "10.1.0.1"), network).empty());
  auto elsewhere = mounted_from("10.1.0.1:/srv", "10.1.0.1");
  elsewhere.statistics.options = "rw,port=20490";
  network.connections.back() = {"10.1.0.1", 20490, 1448, 8948};
  CHECK(of(elsewhere, network).size() == 1);
}

TEST_CASE("a detour through a router, although another address of the server is near") {
  auto network = two_networks();
  network.routes["172.16.0.1"] = {"eth0", "192.168.0.254", 0};
  network.addresses["storage1"] = {"172.16.0.1", "10.1.15.1"};
  const auto found = of(mounted_from("storage1:/srv", "172.16.0.1"), network);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF710");
  CHECK(found[0].message == "it goes by eth0 (1000 Mbit/s) and the router 192.168.0.254 to 172.16.0.1, but storage1 is "
                            "also 10.1.15.1, which is in the network of ib0 (100000 Mbit/s)");
  network.interfaces[2].up = false;
  CHECK(of(mounted_from("storage1:/srv", "172.16.0.1"), network).empty());
  network.interfaces[2].up = true;
  network.addresses["storage1"] = {"172.16.0.1", "10.1.16.1"}; // just outside of 10.1.0.0/20
  CHECK(of(mounted_from("storage1:/srv", "172.16.0.1"), network).empty());
}

TEST_CASE("the slower of two interfaces in the server's network") {
  auto network = two_networks();
  network.interfaces.push_back({"eth1", true, 1500, 10'000, {{"192.168.0.3", 24}}});
  network.routes["192.168.0.1"] = {"eth0", "", 0};
  CHECK(of(mounted_from("192.168.0.1:/srv", "192.168.0.1"), network).size() == 1);
  network.interfaces.back().speed = 0; // who knows
  CHECK(of(mounted_from("192.168.0.1:/srv", "192.168.0.1"), network).empty());
  network.routes["192.168.0.1"] = {"ib0", "10.1.0.254", 0}; // a rule of somebody
  CHECK(of(mounted_from("192.168.0.1:/srv", "192.168.0.1"), network).size() == 1);
}

TEST_CASE("a thousand mounts of one server are said once") {
  auto network = two_networks();
  network.routes["10.1.0.1"] = {"ib0", "", 1500};
  Reading reading;
  reading.mounts.assign(1000, mounted_from("10.1.0.1:/srv", "10.1.0.1"));
  CHECK(diagnose_network(reading, network).size() == 1);
}

TEST_CASE("what ip prints") {
  Network network;
  parse_ip(
      R"([{"ifname":"v0","flags":["UP","LOWER_UP"],"mtu":1500,"addr_info":[{"family":"inet","local":"10.5.0.1","prefixlen":24,"scope":"global"},{"local":"fe80::1","prefixlen":64,"scope":"link"}]},{"ifname":"v1","flags":["NO-CARRIER"],"mtu":9000,"addr_info":[]}]
[{"dst":"10.6.0.1","gateway":"10.5.0.9","dev":"v0","prefsrc":"10.5.0.1","flags":[],"uid":0,"cache":[],"metrics":[{"mtu":1400}]}]
[{"dst":"10.5.0.9","dev":"v0","prefsrc":"10.5.0.1","cache":[]}]
)",
      network);
  CHECK(network.interfaces ==
        std::vector<Interface>{{"v0", true, 1500, 0, {{"10.5.0.1", 24}}}, {"v1", false, 9000, 0, {}}});
  CHECK(network.routes ==
        std::map<std::string, Route>{{"10.6.0.1", {"v0", "10.5.0.9", 1400}}, {"10.5.0.9", {"v0", "", 0}}});
  for (const auto* odd : {"", "x", "[1]", "{}", "[{\"ifname\":1}]", "[{\"dst\":\"a\"}]",
                          "[{\"dst\":\"a\",\"dev\":\"b\",\"metrics\":[1]}]",
                          "[{\"ifname\":\"e\",\"flags\":3,\"addr_info\":[3,{\"scope\":\"global\",\"prefixlen\":99}]}]"})
    CHECK_NOTHROW(parse_ip(odd, network));
}

TEST_CASE("what ss prints") {
  const auto found = parse_connections("0      0      10.0.0.2:871  10.0.0.1:2049  \t cubic wscale:7,7 rto:204 "
                                       "mss:1448 pmtu:1500 rcvmss:1448 advmss:8948 cwnd:10\n"
                                       "0      0      [::ffff:10.0.0.2]:22  [::ffff:10.0.0.3]:50000 mss:1 advmss:2\n"
                                       "0      0      [fd00::2]:22  [fd00::1%eth0]:2049 mss:1 advmss:2\n"
                                       "0      0      10.0.0.2:22  10.0.0.3:50000\n"
                                       "nonsense\n");
  CHECK(found == std::vector<Connection>{
                     {"10.0.0.1", 2049, 1448, 8948}, {"10.0.0.3", 50000, 1, 2}, {"fd00::1%eth0", 2049, 1, 2}});
}

TEST_CASE("one question for all servers, and none without a mount or a tool") {
  test::ScriptedSystem system;
  CHECK(probe_network(system, {}).interfaces.empty());
  CHECK(system.calls().empty());
  Reading reading;
  reading.mounts = {mounted_from("storage1:/srv", "10.0.0.1"), mounted_from("10.0.0.9:/srv", "10.0.0.9"),
                    mounted_from("storage1:/other", "10.0.0.1"), mounted_from("x:/srv", "no address\nroute flush")};
  std::vector<std::string> inputs;
  system.machine.on_run = [&](const sys::Command& command) -> Result<sys::Completed> {
    inputs.push_back(command.input);
    return fail(ErrorCode::not_found, "no such program");
  };
  CHECK(probe_network(system, reading).routes.empty());
  CHECK(inputs == std::vector<std::string>{"address show\nroute get 10.0.0.1\nroute get 10.0.0.9\n"});
}

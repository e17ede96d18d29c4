#include "sys/nfs/net.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

struct Listener {
  explicit Listener(int backlog) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    REQUIRE(::listen(fd.get(), backlog) == 0);
    port = ntohs(address.sin_port);
  }
  Fd fd;
  std::uint16_t port = 0;
};

} // namespace

TEST_CASE("addresses need no name service") {
  struct Row {
    const char* host;
    const char* address;
  };
  const Row row = GENERATE(Row{"127.0.0.1", "127.0.0.1"}, Row{"::1", "::1"}, Row{"[fd00::1]", "fd00::1"},
                           Row{"192.168.16.11", "192.168.16.11"});
  const auto addresses = resolve_host(row.host);
  REQUIRE(addresses);
  REQUIRE(addresses->size() == 1);
  CHECK(addresses->front().text == row.address);
}

TEST_CASE("names are resolved, what is no name is an error") {
  const auto local = resolve_host("localhost");
  REQUIRE(local);
  CHECK((local->front().text == "127.0.0.1" || local->front().text == "::1"));
  for (const char* host : {"", "-", "a b", "[", "[]", "300.1.1.1.1"})
    CHECK_FALSE(resolve_host(host).has_value());
}

TEST_CASE("the first address that accepts wins") {
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  std::vector<Address> addresses;
  for (const char* text : {"::1", "127.0.0.2", "127.0.0.1"})
    addresses.push_back(resolve_host(text)->front());
  const auto connection = connect_tcp(addresses, server.port(), deadline_in(30s));
  REQUIRE(connection);
  CHECK(connection->index == 2);
  const auto refused = connect_tcp({addresses[1]}, server.port(), deadline_in(30s));
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Failure{Fault::connection, ECONNREFUSED});
  CHECK_FALSE(connect_tcp({}, server.port(), deadline_in(1s)));
}

TEST_CASE("each address is told apart, and a silent one is not waited for once another has accepted") {
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  std::vector<Address> addresses;
  for (const char* text : {"127.0.0.2", "127.0.0.1", "192.0.2.1"}) // the last of a network for documentation
    addresses.push_back(resolve_host(text)->front());
  const auto until = deadline_in(30s);
  const auto each = connect_to_each(addresses, server.port(), until, 10ms);
  REQUIRE(each.size() == 3);
  CHECK(each[0].error() == Failure{Fault::connection, ECONNREFUSED});
  CHECK(each[1].has_value());
  CHECK_FALSE(each[2].has_value());
  CHECK(Clock::now() < until);
}

TEST_CASE("ports of services by IPv6") {
  const auto entry = [](XdrWriter& list, std::uint32_t version, const char* network, const char* address) {
    list.word(1).word(100005).word(version).text(network).text(address).text("superuser");
  };
  XdrWriter list;
  entry(list, 3, "tcp6", "::.235.95");
  entry(list, 3, "tcp", "0.0.0.0.1.2");
  entry(list, 2, "tcp6", "fd00::1.0.111");
  for (const char* damaged : {"", ".", "1", "::.300.1", "..", ".1", "::.x.1"})
    entry(list, 1, "tcp6", damaged);
  const auto ports = read_mappings_of_ipv6(list.word(0).bytes());
  REQUIRE(ports);
  REQUIRE(ports->size() >= 2);
  CHECK((*ports)[0].port == 235 * 256 + 95);
  CHECK((*ports)[1].port == 111);
  for (const auto& one : *ports)
    CHECK(one.port < 65536);
  CHECK_FALSE(read_mappings_of_ipv6(XdrWriter().word(1).word(1).bytes()));
}

TEST_CASE("a silent address costs the deadline") {
  const Listener listener(0); // a full backlog is what a firewall that drops packets looks like
  const auto addresses = resolve_host("127.0.0.1");
  const auto fills = connect_tcp(*addresses, listener.port, deadline_in(30s));
  REQUIRE(fills);
  pollfd queued{listener.fd.get(), POLLIN, 0};
  REQUIRE(::poll(&queued, 1, 30'000) == 1);
  const auto until = deadline_in(150ms);
  const auto silent = connect_tcp(*addresses, listener.port, until);
  REQUIRE_FALSE(silent);
  CHECK(silent.error() == Failure{Fault::connection, ETIMEDOUT});
  CHECK(Clock::now() >= until);
}

TEST_CASE("a reserved port is used where it is allowed, and not used up") {
  const Listener listener(1);
  const auto addresses = resolve_host("127.0.0.1");
  for (int i = 0; i < 400; ++i) { // more than there are reserved ports
    const auto connection = connect_tcp(*addresses, listener.port, deadline_in(30s), reserve_sockets());
    REQUIRE(connection);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const Fd accepted(::accept(listener.fd.get(), reinterpret_cast<sockaddr*>(&peer), &size));
    REQUIRE(accepted);
    if (::geteuid() == 0)
      REQUIRE(ntohs(peer.sin_port) < 1024);
  }
}

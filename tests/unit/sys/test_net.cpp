#include "sys/nfs/net.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

TEST_CASE("addresses need no name service") {
  struct Row {
    const char* host;
    const char* address;
  };
  const Row row = GENERATE(Row{"127.0.0.1", "127.0.0.1"}, Row{"::1", "::1"}, Row{"[fd00::1]", "fd00::1"},
                           Row{"192.168.16.11", "192.168.16.11"});
  const auto addresses = resolve_host(row.host, deadline_in(0ms));
  REQUIRE(addresses);
  REQUIRE(addresses->size() == 1);
  CHECK(addresses->front().text == row.address);
}

TEST_CASE("names are resolved, what is no name is an error") {
  const auto local = resolve_host("localhost", deadline_in(2s));
  REQUIRE(local);
  CHECK((local->front().text == "127.0.0.1" || local->front().text == "::1"));
  for (const char* host : {"", "-", "a b", "[", "[]", "300.1.1.1.1"})
    CHECK_FALSE(resolve_host(host, deadline_in(1s)).has_value());
}

TEST_CASE("the first address that accepts wins") {
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  std::vector<Address> addresses;
  for (const char* text : {"::1", "127.0.0.2", "127.0.0.1"})
    addresses.push_back(resolve_host(text, deadline_in(1s))->front());
  const Connection connection = connect_tcp(addresses, server.port(), deadline_in(2s));
  REQUIRE(connection.fd);
  CHECK(connection.index == 2);
  const Connection refused = connect_tcp({addresses[1]}, server.port(), deadline_in(2s));
  CHECK_FALSE(refused.fd);
  CHECK(refused.error_number == ECONNREFUSED);
  CHECK_FALSE(connect_tcp({}, server.port(), deadline_in(1s)).fd);
}

TEST_CASE("a silent address costs the deadline") {
  // A full backlog is what a firewall that drops packets looks like.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  REQUIRE(::listen(listener, 0) == 0);
  const auto addresses = resolve_host("127.0.0.1", deadline_in(1s));
  const std::uint16_t port = ntohs(address.sin_port);
  const Connection fills = connect_tcp(*addresses, port, deadline_in(200ms));
  CHECK(fills.fd);
  const auto begin = Clock::now();
  const Connection silent = connect_tcp(*addresses, port, deadline_in(150ms));
  CHECK_FALSE(silent.fd);
  CHECK(silent.error_number == ETIMEDOUT);
  CHECK(Clock::now() - begin >= 150ms);
  CHECK(Clock::now() - begin < 400ms);
  ::close(listener);
}

TEST_CASE("a reserved port is used where it is allowed") {
  std::atomic<std::uint16_t> port = 0;
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  const auto addresses = resolve_host("127.0.0.1", deadline_in(1s));
  const Connection connection = connect_tcp(*addresses, server.port(), deadline_in(1s), true);
  REQUIRE(connection.fd);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  REQUIRE(::getsockname(connection.fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
  if (::geteuid() == 0)
    CHECK(ntohs(own.sin_port) < 1024);
}

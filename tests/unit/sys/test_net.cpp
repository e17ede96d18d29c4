#include "sys/net/connect.hpp"

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

TEST_CASE("an address accepts or refuses") {
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  CHECK(connect_to(*resolve_host("127.0.0.1"), server.port(), deadline_in(30s)));
  const auto refused = connect_to(*resolve_host("127.0.0.2"), server.port(), deadline_in(30s));
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == ECONNREFUSED);
}

TEST_CASE("of several addresses one has to accept, and a silent one is not waited for then") {
  const test::FakeRpcServer server([](const test::RpcCall&) { return test::RpcAnswer(); });
  std::vector<Address> addresses;
  for (const char* text : {"127.0.0.2", "127.0.0.1", "192.0.2.1"}) // the last of a network for documentation
    addresses.push_back(resolve_host(text)->front());
  const auto until = deadline_in(30s);
  CHECK(connect_to(addresses, server.port(), until));
  CHECK(Clock::now() < until);
  addresses.resize(1);
  const auto refused = connect_to(addresses, server.port(), until);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == ECONNREFUSED);
}

TEST_CASE("a silent address costs the deadline", "[waits]") {
  const Listener listener(0); // a full backlog is what a firewall that drops packets looks like
  const Address address = resolve_host("127.0.0.1")->front();
  const auto fills = connect_to({address}, listener.port, deadline_in(30s));
  REQUIRE(fills);
  pollfd queued{listener.fd.get(), POLLIN, 0};
  REQUIRE(::poll(&queued, 1, 30'000) == 1);
  const auto until = deadline_in(150ms);
  const auto silent = connect_to({address}, listener.port, until);
  REQUIRE_FALSE(silent);
  CHECK(silent.error() == ETIMEDOUT);
  CHECK(Clock::now() >= until);
}

TEST_CASE("a reserved port is used where it is allowed, and not used up") {
  const Listener listener(1);
  const Address address = resolve_host("127.0.0.1")->front();
  for (int i = 0; i < 400; ++i) { // more than there are reserved ports
    const auto connection = connect_to({address}, listener.port, deadline_in(30s), reserve_socket(AF_INET));
    REQUIRE(connection);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const Fd accepted(::accept(listener.fd.get(), reinterpret_cast<sockaddr*>(&peer), &size));
    REQUIRE(accepted);
    if (::geteuid() == 0)
      REQUIRE(ntohs(peer.sin_port) < 1024);
  }
}

// What libnfs reads of sound replies. (What it does with others is seen in test_hostile_server, by a child.)
#include "sys/nfs/rpc_client.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"
#include "sys/net/connect.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using test::FakeRpcServer;
using test::RpcAnswer;
using test::RpcCall;
using test::Xdr;

namespace {

using Kind = RpcAnswer::Kind;

RpcClient client_of(const FakeRpcServer& server) {
  auto connected = connect_to(*resolve_host("127.0.0.1"), server.port(), deadline_in(30s));
  REQUIRE(connected);
  return {std::move(*connected), ::geteuid(), ::getegid()};
}

RpcAnswer result(const Xdr& bytes) {
  return {Kind::result, bytes.bytes()};
}

} // namespace

TEST_CASE("mountd's port: over IPv4, and over IPv6 by version 3 of the portmapper") {
  std::string address;
  const FakeRpcServer server([&](const RpcCall& call) {
    CHECK(call.procedure == 3); // GETPORT, GETADDR
    if (call.version == 2)
      return result(Xdr().word(20054));
    CHECK(call.argument == Xdr().word(100005).word(3).text("tcp6").text("").text("").bytes());
    return result(Xdr().text(address));
  });
  auto client = client_of(server);
  std::uint16_t found = 0;
  CHECK(client.find_mountd(false, found, deadline_in(30s)) == ServerAnswer());
  CHECK(found == 20054);
  for (const auto& [text, port] : {std::pair{"::.235.95", 235 * 256 + 95},
                                   {"fd00::1.8.1", 2049},
                                   {"::.300.1", 0},
                                   {"", 0},
                                   {"::.1.", 0},
                                   {"1.2", 0},
                                   {"::.x.1", 0},
                                   {"::.1.2x", 0}}) {
    FakeRpcServer::between_answers([&] { address = text; });
    INFO(text);
    CHECK(client.find_mountd(true, found, deadline_in(30s)) == ServerAnswer());
    CHECK(found == port);
  }
}

TEST_CASE("the status of a look-up by NFS 4, and the steps that are asked") {
  std::string argument;
  std::uint32_t status = 0;
  const FakeRpcServer server([&](const RpcCall& call) {
    argument = call.argument;
    return test::compound_answer(status);
  });
  auto client = client_of(server);
  for (const int said : {0, 2, 13, 10016, 10021}) {
    FakeRpcServer::between_answers([&] { status = static_cast<std::uint32_t>(said); });
    CHECK(client.look_up({"srv", "a b"}, 0, deadline_in(30s)) ==
          ServerAnswer{said == 0 ? Fault::none : Fault::status, said});
  }
  Xdr asked;
  asked.text("").word(0).word(4).word(24).word(15).text("srv").word(15).text("a b");
  asked.word(9).word(1).word(2); // GETATTR of the type
  CHECK(FakeRpcServer::between_answers([&] { return argument; }) == asked.bytes());
}

TEST_CASE("who calls is said as mount.nfs says it, and refusals are told apart", "[waits]") {
  RpcAnswer answer;
  const FakeRpcServer server([&](const RpcCall&) { return answer; });
  const auto ask = [&](RpcAnswer next) {
    FakeRpcServer::between_answers([&] { answer = std::move(next); });
    return client_of(server).null(100003, 3, deadline_in(500ms)).fault;
  };
  CHECK(ask({}) == Fault::none);
  CHECK(ask({Kind::no_program, {}}) == Fault::unsupported);
  CHECK(ask({Kind::version_mismatch, {}}) == Fault::unsupported);
  CHECK(ask({Kind::reply, Xdr().word(1).word(1).word(1).word(5).bytes()}) == Fault::refused);         // too weak
  CHECK(ask({Kind::reply, Xdr().word(1).word(0).word(0).word(0).word(5).bytes()}) == Fault::refused); // SYSTEM_ERR
  CHECK(ask({Kind::reply, Xdr().word(0).bytes()}) == Fault::unreadable);
  CHECK(ask({Kind::hang_up, {}}) == Fault::closed);
  CHECK(ask({Kind::silence, {}}) == Fault::timeout);
}

TEST_CASE("a long list comes in several fragments") {
  const FakeRpcServer server([](const RpcCall& call) {
    Xdr reply; // as on the wire: a whole record follows its mark, fragment by fragment
    reply.word(call.xid).word(1).word(0).word(0).word(0).word(0);
    for (int i = 0; i < 3000; ++i)
      reply.word(1).text("/srv/" + std::to_string(i)).word(1).text("10.0.0.0/24").word(0);
    const std::string record = reply.word(0).bytes();
    std::string wire;
    constexpr std::size_t part = 8000;
    for (std::size_t at = 0; at < record.size(); at += part) {
      const auto bytes = record.substr(at, part);
      const std::uint32_t last = at + part >= record.size() ? 0x80000000U : 0U;
      wire += Xdr().word(last | static_cast<std::uint32_t>(bytes.size())).bytes() + bytes;
    }
    return RpcAnswer{Kind::bytes, wire};
  });
  std::vector<ExportListing> exports;
  REQUIRE(client_of(server).list_exports(exports, deadline_in(30s)) == ServerAnswer());
  REQUIRE(exports.size() == 3000);
  CHECK(exports.back() == ExportListing{"/srv/2999", {"10.0.0.0/24"}});
}

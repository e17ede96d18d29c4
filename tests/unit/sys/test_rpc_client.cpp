// What is asked of a server as bytes, and what libnfs reads of sound replies. (What it does with others is seen in
// test_hostile_server.)
#include "sys/nfs/nfs_probe.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using test::FakeRpcServer;
using test::RpcAnswer;
using test::RpcCall;
using test::Xdr;

namespace {

using Kind = RpcAnswer::Kind;
constexpr std::uint32_t k_nfs_program = 100003, k_mountd_program = 100005;

/// Asks a server whose NFS, portmapper and mountd are one.
NfsProbe ask_one(const FakeRpcServer& server, std::vector<std::string> paths = {},
                 std::chrono::milliseconds timeout = 30s) {
  const bool is_ipv6 = server.is_ipv6();
  auto probe = probe_nfs_server(
      {is_ipv6 ? "::1" : "127.0.0.1", std::move(paths), timeout, true, {server.port(), server.port()}});
  FakeRpcServer::settle();
  return probe;
}

RpcAnswer result_of(const Xdr& bytes) {
  return {Kind::result, bytes.bytes()};
}

} // namespace

TEST_CASE("mountd's port: over IPv4, and over IPv6 by version 3 of the portmapper") {
  std::string address, argument;
  const auto serve = [&](const RpcCall& call) {
    if (call.program == k_nfs_program || call.program == k_mountd_program)
      return call.procedure == 1 ? test::compound_answer() : RpcAnswer();
    CHECK(call.procedure == 3); // GETPORT, GETADDR
    argument = call.argument;
    return call.version == 2 ? result_of(Xdr().word(20054)) : result_of(Xdr().text(address));
  };
  const auto found = [](const NfsProbe& probe) {
    const auto& mountd = probe.result_of(ProbeStage::mountd).detail;
    return mountd.find("not registered") != std::string::npos ? 0 : std::stoi(mountd.substr(mountd.find("port ") + 5));
  };
  CHECK(found(ask_one(FakeRpcServer(serve))) == 20054);
  const FakeRpcServer server(serve, AF_INET6);
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
    CHECK(found(ask_one(server)) == port);
    CHECK(argument == Xdr().word(k_mountd_program).word(3).text("tcp6").text("").text("").bytes());
  }
}

TEST_CASE("the steps of a look-up by NFS 4") {
  std::string argument;
  const FakeRpcServer server([&](const RpcCall& call) {
    if (call.program == k_nfs_program && call.procedure == 1)
      argument = call.argument;
    return call.procedure == 1 ? test::compound_answer() : RpcAnswer();
  });
  ask_one(server, {"/srv//a b/"});
  Xdr asked;
  asked.text("").word(0).word(4).word(24).word(15).text("srv").word(15).text("a b");
  asked.word(9).word(1).word(2); // GETATTR of the type
  CHECK(FakeRpcServer::between_answers([&] { return argument; }) == asked.bytes());
}

TEST_CASE("refusals are told apart", "[waits]") {
  const auto said = [&](const RpcAnswer& answer) {
    const FakeRpcServer server([&](const RpcCall&) { return answer; });
    return ask_one(server, {}, answer.kind == Kind::silence ? 500ms : 30s).result_of(ProbeStage::nfs3).detail;
  };
  const std::string refused = "the server refuses this host's calls",
                    unreadable = "the server sent a reply that cannot be read";
  CHECK(said({}) == "version 3");
  CHECK(said({Kind::no_program, {}}) == "not offered");
  CHECK(said({Kind::version_mismatch, {}}) == "not offered");
  CHECK(said({Kind::reply, Xdr().word(1).word(1).word(1).word(5).bytes()}) == refused);         // too weak
  CHECK(said({Kind::reply, Xdr().word(1).word(0).word(0).word(0).word(5).bytes()}) == refused); // SYSTEM_ERR
  CHECK(said({Kind::reply, Xdr().word(0).bytes()}) == unreadable);
  CHECK(said({Kind::hang_up, {}}) == "the server closed the connection");
  CHECK(said({Kind::silence, {}}).starts_with("no answer within"));
}

TEST_CASE("a long list comes in several fragments") {
  std::uint16_t own_port = 0;
  const FakeRpcServer server([&](const RpcCall& call) {
    if (call.program == k_nfs_program)
      return call.procedure == 1 ? test::compound_answer() : RpcAnswer();
    if (call.program != k_mountd_program)
      return result_of(Xdr().word(own_port));
    if (call.procedure != 5)
      return RpcAnswer();
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
  own_port = server.port();
  const auto exports = ask_one(server, {"/srv/1"}).exports;
  REQUIRE(exports.size() == 3000);
  CHECK(exports.back() == ExportListing{"/srv/2999", {"10.0.0.0/24"}});
}

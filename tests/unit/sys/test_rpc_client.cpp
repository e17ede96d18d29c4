// What is asked of a server as bytes, and what libnfs reads of sound replies. (What it does with others is seen in
// test_hostile_server.) At the end: what libnfs 4.0.0 has no answer to, and so a few lines of src/sys/nfs ask or read
// themselves.
#include "sys/nfs/nfs_probe.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <fcntl.h>
#include <memory>
#include <poll.h>

// The order matters: libnfs's headers use types of each other without including them.
#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-portmap.h>

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

#ifndef SHAREFS_LIBNFS_HAS_TASKS // newer versions have another API, and nothing is claimed about them
namespace {

using LibnfsContext = std::unique_ptr<nfs_context, void (*)(nfs_context*)>;

LibnfsContext make_libnfs_context() {
  LibnfsContext context(::nfs_init_context(), ::nfs_destroy_context);
  ::nfs_set_autoreconnect(context.get(), 0);
  return context;
}

/// Lets libnfs mount /srv/a by itself, and returns its error.
std::string mount_by_libnfs(const FakeRpcServer& server, int version) {
  const auto context = make_libnfs_context();
  const auto port = std::to_string(server.port());
  const auto text =
      "nfs://127.0.0.1/srv/a?version=" + std::to_string(version) + "&nfsport=" + port + "&mountport=" + port;
  const std::unique_ptr<nfs_url, void (*)(nfs_url*)> url(::nfs_parse_url_dir(context.get(), text.c_str()),
                                                         ::nfs_destroy_url);
  ::nfs_set_timeout(context.get(), 30'000);
  const int error = ::nfs_mount(context.get(), url->server, url->path);
  FakeRpcServer::settle();
  return error == 0 ? "" : ::nfs_get_error(context.get());
}

struct LibnfsReply {
  int status = -1; ///< RPC_STATUS_...; -1: there was none
  std::string text;
};

/// Makes one call by libnfs, over a connection of our own.
template <class Call> LibnfsReply call_by_libnfs(const FakeRpcServer& server, const Call& call) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(server.port());
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  LibnfsReply reply; // libnfs may call back until the context is gone
  const auto context = make_libnfs_context();
  auto* const rpc = ::nfs_get_rpc_context(context.get());
  ::rpc_set_fd(rpc, fd);
  ::rpc_service(rpc, POLLOUT);
  REQUIRE(call(rpc, &reply) == 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int served = 0; served == 0 && reply.status < 0 && std::chrono::steady_clock::now() < end;) {
    pollfd socket{::rpc_get_fd(rpc), static_cast<short>(::rpc_which_events(rpc)), 0};
    ::poll(&socket, 1, 100);
    served = ::rpc_service(rpc, socket.revents);
  }
  return reply;
}

/// Asks for the NULL procedure of NFS 3, as a server that answers so.
LibnfsReply ask_null(const RpcAnswer& answer) {
  const FakeRpcServer server([&](const RpcCall&) { return answer; });
  return call_by_libnfs(server, [](rpc_context* rpc, LibnfsReply* reply) {
    const auto read = [](rpc_context*, int status, void* text, void* into) {
      const bool has_text = status == RPC_STATUS_ERROR && text != nullptr;
      *static_cast<LibnfsReply*>(into) = {status, has_text ? static_cast<const char*>(text) : ""};
    };
    return ::rpc_null_async(rpc, k_nfs_program, 3, read, reply);
  });
}

} // namespace

TEST_CASE("libnfs cannot look up a path by NFS 4 without a state on the server, nor ask for minor versions") {
  const std::uint32_t status = GENERATE(10021U, 10019U); // the server has no version 4.0; the path is a referral
  std::vector<std::string> compounds;
  const FakeRpcServer server([&](const RpcCall& call) {
    if (call.procedure != 1)
      return RpcAnswer();
    compounds.push_back(call.argument);
    return test::compound_answer(status);
  });
  CHECK(mount_by_libnfs(server, 4).find("SETCLIENTID") != std::string::npos);
  REQUIRE(compounds.size() == 1); // with the first refusal it gives up: the path was not asked, nor version 4.1
  // An empty tag, minor version 0, one operation: SETCLIENTID.
  CHECK(compounds.front().starts_with(Xdr().text("").word(0).word(1).word(35).bytes()));
}

TEST_CASE("libnfs does not say that mountd exports a path with Kerberos only") {
  bool asked_nfs = false;
  const FakeRpcServer server([&](const RpcCall& call) {
    asked_nfs = asked_nfs || (call.program == k_nfs_program && call.procedure != 0);
    if (call.program == k_mountd_program && call.procedure == 1)
      return RpcAnswer{Kind::result, Xdr().word(0).text("handle").word(1).word(390003).bytes()};
    return call.program == k_mountd_program && call.procedure == 5 ? RpcAnswer{Kind::result, Xdr().word(0).bytes()}
                                                                   : RpcAnswer();
  });
  const auto error = mount_by_libnfs(server, 3);
  CHECK(asked_nfs); // it goes on as if it were let in
  CHECK(error.find("erberos") == std::string::npos);
}

TEST_CASE("libnfs reports why a server refuses a call in words only") {
  CHECK(ask_null({}).status == RPC_STATUS_SUCCESS);
  const auto no_program = ask_null({Kind::no_program, {}}), no_version = ask_null({Kind::version_mismatch, {}}),
             too_weak = ask_null({Kind::reply, Xdr().word(1).word(1).word(1).word(5).bytes()}),
             system_error = ask_null({Kind::reply, Xdr().word(1).word(0).word(0).word(0).word(5).bytes()}),
             closed = ask_null({Kind::hang_up, {}});
  for (const auto& one : {no_program, no_version, too_weak, system_error, closed})
    CHECK(one.status == RPC_STATUS_ERROR);
  CHECK(no_program.text.find("not available") != std::string::npos);
  CHECK(no_version.text.find("version mismatch") != std::string::npos);
  CHECK(too_weak.text.find("not accepted") != std::string::npos);
  CHECK(system_error.text.find("System Error") != std::string::npos);
  CHECK(closed.text.find("reconnect") != std::string::npos); // it does not say that the server has closed it
}

TEST_CASE("libnfs passes on a universal address as text, without its port") {
  const FakeRpcServer server([](const RpcCall&) { return RpcAnswer{Kind::result, Xdr().text("::.8.1").bytes()}; });
  const auto reply = call_by_libnfs(server, [](rpc_context* rpc, LibnfsReply* into) {
    std::string network = "tcp6", nothing;
    pmap3_mapping mapping{k_mountd_program, 3, network.data(), nothing.data(), nothing.data()};
    const auto read = [](rpc_context*, int status, void* result, void* to) {
      const bool has_result = status == RPC_STATUS_SUCCESS && result != nullptr;
      *static_cast<LibnfsReply*>(to) = {status,
                                        has_result ? static_cast<const pmap3_string_result*>(result)->addr : ""};
    };
    return ::rpc_pmap3_getaddr_async(rpc, &mapping, read, into);
  });
  CHECK(reply.status == RPC_STATUS_SUCCESS);
  CHECK(reply.text == "::.8.1");
}
#endif

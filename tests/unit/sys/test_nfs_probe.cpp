#include "sys/nfs/nfs_probe.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>
#include <sys/resource.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using test::FakeRpcServer;
using test::RpcAnswer;
using test::RpcCall;
using test::Xdr;

namespace {

using Kind = RpcAnswer::Kind;
constexpr std::uint32_t k_portmapper = 100000, k_nfs = 100003, k_mountd = 100005, k_tcp = 6;

std::uint32_t word_of(const std::string& argument, std::size_t number) {
  std::uint32_t word = 0;
  argument.copy(reinterpret_cast<char*>(&word), sizeof word, number * sizeof word);
  return ntohl(word);
}

/// An NFS server whose parts can be missing, silent or broken.
struct Server {
  std::set<std::uint32_t> versions{3, 4};
  Kind nfs = Kind::result, nfs4 = Kind::result;
  bool has_mountd = true;
  Kind mountd = Kind::result, portmapper = Kind::result;
  std::vector<ExportListing> exports{{"/srv/a", {"10.0.0.1", "10.0.0.0/24"}}, {"/srv/b", {}}};
  std::uint32_t mount_status = 0, look_up_status = 0, path_status = 0;
  std::uint32_t oldest_minor = 0, newest_minor = 2;
  std::vector<std::uint32_t> flavors{1};
  std::atomic<int> mounted = 0, unmounted = 0, looked_up = 0;
  std::atomic<std::uint16_t> mount_peer_port = 0;

  FakeRpcServer nfs_port{[this](const RpcCall& call) { return serve_nfs(call); }};
  FakeRpcServer mountd_port{[this](const RpcCall& call) { return serve_mountd(call); }};
  FakeRpcServer portmapper_port{[this](const RpcCall& call) { return serve_portmapper(call); }};

  [[nodiscard]] NfsPorts ports() const { return {nfs_port.port(), portmapper_port.port()}; }

  RpcAnswer serve_nfs(const RpcCall& call) {
    if (nfs != Kind::result)
      return {nfs, {}};
    if (call.program != k_nfs)
      return {Kind::no_program, {}};
    if (call.version == 4 && nfs4 != Kind::result)
      return {nfs4, {}};
    if (versions.count(call.version) == 0)
      return {Kind::version_mismatch, {}};
    if (call.procedure != 1)
      return {};
    ++looked_up;
    const auto minor = word_of(call.argument, 1), steps = word_of(call.argument, 2); // behind an empty tag
    if (minor < oldest_minor || minor > newest_minor)
      return test::compound_answer(10021);
    return test::compound_answer(minor > 0 ? 10071 : steps > 2 && path_status != 0 ? path_status : look_up_status);
  }
  RpcAnswer serve_portmapper(const RpcCall& call) const {
    if (portmapper != Kind::result || call.program != k_portmapper)
      return {portmapper, {}};
    const bool is_known = has_mountd && call.procedure == 3 && // GETPORT
                          call.argument == Xdr().word(k_mountd).word(3).word(k_tcp).word(0).bytes();
    return {Kind::result, Xdr().word(is_known ? mountd_port.port() : 0).bytes()};
  }
  RpcAnswer serve_mountd(const RpcCall& call) {
    if (mountd != Kind::result || call.procedure == 0)
      return {mountd, {}};
    Xdr answer;
    if (call.procedure == 5) {
      for (const ExportListing& one : exports) {
        answer.word(1).text(one.directory);
        for (const std::string& client : one.clients)
          answer.word(1).text(client);
        answer.word(0);
      }
      return {Kind::result, answer.word(0).bytes()};
    }
    if (call.procedure == 3) {
      ++unmounted;
      return {Kind::result, {}};
    }
    ++mounted;
    mount_peer_port = call.peer_port;
    answer.word(mount_status);
    if (mount_status == 0) {
      answer.text("handle").word(static_cast<std::uint32_t>(flavors.size()));
      for (const std::uint32_t flavor : flavors)
        answer.word(flavor);
    }
    return {Kind::result, answer.bytes()};
  }
};

/// The servers see what the test has changed, and the other way round.
NfsProbe ask(NfsProbeRequest request, const NfsPorts& ports = {}) {
  request.ports = ports;
  FakeRpcServer::settle();
  NfsProbe result = probe_nfs_server(request);
  FakeRpcServer::settle();
  return result;
}

NfsProbe probe(const Server& server, const NfsProbeRequest& request = {"127.0.0.1", {}, 30s, true}) {
  return ask(request, server.ports());
}

const StageResult& stage(const NfsProbe& probe, ProbeStage which) {
  return probe.stages.at(static_cast<std::size_t>(which));
}

/// "ok ok ok ..." in the order of the stages.
std::string outcomes(const NfsProbe& probe) {
  std::string text;
  for (const StageResult& one : probe.stages)
    text += std::string(text.empty() ? "" : " ") + to_string(one.outcome);
  return text;
}

/// A port on which nobody listens, and nobody else can: it stays bound.
std::uint16_t closed_port() {
  static const Fd s_bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  static const std::uint16_t s_port = [] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(s_bound.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::getsockname(s_bound.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
  }();
  return s_port;
}

} // namespace

TEST_CASE("each version is asked for the paths that are named, and only those are looked up by version 4") {
  Server server;
  CHECK(probe(server, {"127.0.0.1", {"/srv/a", "/srv/b"}, 30s, true}).access.size() == 2);
  CHECK(server.mounted == 2);
  CHECK(server.looked_up == 4); // its root, its newest minor version, and the two paths
  server.looked_up = 0;
  probe(server);
  CHECK(server.looked_up == 2);
}

TEST_CASE("a path that one version alone has may be mounted by that one") {
  Server server;
  const NfsProbeRequest request{"127.0.0.1", {"/srv/a"}, 30s, true};
  SECTION("version 3: with fsid=0 the paths of version 4 begin there, and NFS-Ganesha has others (Pseudo)") {
    server.path_status = 2;
    CHECK(probe(server, request).access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1", 3}});
  }
  SECTION("version 4") {
    server.mount_status = 2;
    CHECK(probe(server, request).access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1", 4}});
    CHECK(stage(probe(server, request), ProbeStage::access).outcome == StageOutcome::ok);
  }
  SECTION("a directory above that is closed to this host's root says nothing about other paths") {
    server.path_status = 13;
    CHECK(probe(server, request).access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1"}});
  }
  SECTION("version 4, whose mountd a firewall hides") {
    server.mountd = Kind::hang_up;
    CHECK(probe(server, request).access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1"}});
  }
  SECTION("a referral of version 4 is followed, and named because the other server was not asked") {
    server.path_status = 10019;
    const std::string referral = "NFS 4 refers to another server (referral)";
    CHECK(probe(server, request).access == std::vector<ExportAccess>{{"/srv/a", true, referral, "127.0.0.1"}});
  }
}

TEST_CASE("the newest minor version of 4 is found") {
  Server server;
  const NfsProbeRequest request{"127.0.0.1", {"/srv/a"}, 30s, true};
  for (const std::uint32_t minor : {2U, 1U, 0U}) {
    server.newest_minor = minor;
    const NfsProbe result = probe(server, request);
    CHECK(result.v4_minor == static_cast<int>(minor));
    CHECK(stage(result, ProbeStage::nfs4).detail == "version 4." + std::to_string(minor));
  }
  server.newest_minor = 2;
  server.oldest_minor = 1; // without 4.0 nothing can be looked up outside of a session
  server.versions = {4};
  server.has_mountd = false;
  const NfsProbe result = probe(server, request);
  CHECK((result.usable(4) && result.v4_minor == 2 && result.access.empty()));
}

TEST_CASE("a healthy server") {
  Server server;
  const NfsProbe result = probe(server);
  CHECK(outcomes(result) == "ok ok ok ok ok ok ok ok");
  CHECK(result.host == "127.0.0.1");
  CHECK(result.address == "127.0.0.1");
  CHECK((result.v3 && result.v4));
  CHECK(result.exports == server.exports);
  CHECK(result.access ==
        std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1"}, {"/srv/b", true, "", "127.0.0.1"}});
  CHECK(stage(result, ProbeStage::access).detail == "2 of 2 exports");
  CHECK(result.usable());
  CHECK(result.usable(3));
  CHECK(result.usable(4));
  CHECK(server.mounted == 2);
  CHECK(server.unmounted == 2); // out of the server's list of mounts again
  if (::geteuid() == 0)
    CHECK(server.mount_peer_port < 1024);
  for (const StageResult& one : result.stages) {
    INFO(to_string(one.stage));
    CHECK(one.round_trip.count() > 0);
    CHECK(one.cause.empty());
    CHECK(one.hint.empty());
  }
}

TEST_CASE("access is only asked for when wanted, and for the paths that were named") {
  Server server;
  CHECK(outcomes(probe(server, {"127.0.0.1", {}, 30s, false})).ends_with("ok skipped"));
  CHECK(server.mounted == 0);
  const NfsProbe one = probe(server, {"127.0.0.1", {"/srv/b"}, 30s, true});
  CHECK(one.access == std::vector<ExportAccess>{{"/srv/b", true, "", "127.0.0.1"}});
}

TEST_CASE("refusals are told apart by the export list") {
  Server server;
  server.path_status = 2; // NFS 4 hides what this host may not mount
  const NfsProbeRequest request{"127.0.0.1", {"/srv/a"}, 30s, true};
  const NfsProbeRequest unlisted{"127.0.0.1", {"/srv/abc"}, 30s, true};
  const NfsProbeRequest below{"127.0.0.1", {"/srv/a/sub"}, 30s, true};
  server.mount_status = 13;
  CHECK(probe(server, request).access[0].reason.starts_with("access denied by server"));
  CHECK(probe(server, below).access[0].reason.starts_with("access denied by server"));
  CHECK(probe(server, unlisted).access[0].reason == "no such export");
  server.mount_status = 2;
  CHECK(probe(server, request).access[0].reason == "exported, but the server has no such directory");
  CHECK(probe(server, unlisted).access[0].reason == "no such export");
  CHECK(probe(server, below).access[0].reason == "no such directory");
  server.mount_status = 10006;
  CHECK(probe(server, request).access[0].reason == "mountd reports error 10006");
  server.mount_status = 0;
  server.flavors = {390003, 390004};
  server.path_status = 10016;
  const NfsProbe kerberos = probe(server, request);
  CHECK(kerberos.access[0] == ExportAccess{"/srv/a", false, "only Kerberos (krb5)", "127.0.0.1"});
  CHECK(stage(kerberos, ProbeStage::access).outcome == StageOutcome::failed);
  CHECK(stage(kerberos, ProbeStage::access).cause == "/srv/a: only Kerberos (krb5)");
  CHECK(kerberos.usable()); // the server is; the export is not
}

TEST_CASE("thousands of exports that are all refused are explained within the time of the probe", "[waits]") {
  Server server;
  server.exports.clear();
  for (int i = 0; i < 20'000; ++i)
    server.exports.push_back({"/srv/share/of/project/" + std::to_string(i), {}});
  server.mount_status = 13;
  const NfsProbe result = probe(server);
  CHECK(result.access.size() == 20'000);
  CHECK(result.took < 30s);
}

TEST_CASE("an empty export list is named") {
  Server server;
  server.exports.clear();
  const NfsProbe result = probe(server);
  CHECK(outcomes(result) == "ok ok ok ok ok ok failed skipped");
  CHECK(stage(result, ProbeStage::exports).detail == "nothing is exported");
}

TEST_CASE("a server of version 4 alone lacks nothing", "[waits]") {
  Server server;
  server.versions = {4};
  SECTION("without a portmapper") {
    const NfsProbe result = ask({"127.0.0.1", {"/x"}, 30s, true}, {server.nfs_port.port(), closed_port()});
    CHECK(outcomes(result) == "ok ok absent absent absent ok skipped skipped");
    CHECK(result.usable(4));
    CHECK(result.usable());
    REQUIRE(result.failing(3) != nullptr);
    CHECK(result.failing(3)->stage == ProbeStage::portmapper);
    CHECK(result.access == std::vector<ExportAccess>{{"/x", true, "", "127.0.0.1"}}); // it was looked up
    server.look_up_status = 2;
    const NfsProbe refused = ask({"127.0.0.1", {"/x"}, 30s, true}, {server.nfs_port.port(), closed_port()});
    CHECK(refused.access[0].reason == "access denied by server, or it has no such directory");
    CHECK(refused.usable(4));
    server.look_up_status = 10016;
    const NfsProbe kerberos = ask({"127.0.0.1", {"/x"}, 30s, true}, {server.nfs_port.port(), closed_port()});
    CHECK(kerberos.access[0] == ExportAccess{"/x", false, "only Kerberos (krb5)", "127.0.0.1"});
  }
  SECTION("with one, but no mountd") {
    server.has_mountd = false;
    CHECK(outcomes(probe(server)) == "ok ok ok absent absent ok skipped skipped");
  }
  SECTION("with a portmapper that says nothing, behind a firewall") {
    server.portmapper = Kind::silence;
    const NfsProbe result = probe(server, {"127.0.0.1", {}, 2s, true});
    CHECK(outcomes(result) == "ok ok absent absent absent ok skipped skipped");
  }
}

TEST_CASE("a server of version 3 alone") {
  Server server;
  server.versions = {3};
  const NfsProbe result = probe(server);
  CHECK(outcomes(result) == "ok ok ok ok ok absent ok ok");
  CHECK(result.failing(4)->stage == ProbeStage::nfs4);
  CHECK(result.usable(3));
}

TEST_CASE("a version that does not answer in time is not one that is not offered", "[waits]") {
  Server server;
  SECTION("version 4") {
    server.nfs4 = Kind::silence;
    const NfsProbe result = probe(server, {"127.0.0.1", {}, 2s, true});
    CHECK(outcomes(result) == "ok ok ok ok ok failed ok ok");
    CHECK((result.v3 && !result.v4 && result.v4_unknown));
    CHECK_FALSE(result.v3_unknown);
    CHECK(result.usable(3));
    CHECK_FALSE(result.usable(4));
    CHECK(result.failing(4)->detail.starts_with("no answer within"));
  }
  SECTION("version 4, where the server ends the connection") {
    server.nfs4 = Kind::hang_up;
    const NfsProbe result = probe(server);
    CHECK(stage(result, ProbeStage::nfs4).outcome == StageOutcome::failed);
    CHECK(result.v4_unknown);
  }
  SECTION("version 4, which is switched off") {
    server.versions = {3};
    const NfsProbe result = probe(server);
    CHECK(stage(result, ProbeStage::nfs4).outcome == StageOutcome::absent);
    CHECK_FALSE((result.v3_unknown || result.v4_unknown));
  }
  SECTION("both, of a server that is away") {
    const NfsProbe result = ask({"127.0.0.1", {}, 1000ms, true}, {closed_port(), closed_port()});
    CHECK((result.v3_unknown && result.v4_unknown));
  }
}

TEST_CASE("several threads ask at the same time, and no descriptor is left", "[fork]") {
  Server server;
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  std::vector<std::future<NfsProbe>> probes;
  for (int i = 0; i < 20; ++i)
    probes.push_back(std::async(std::launch::async, [&server, i] {
      return probe(server, {"127.0.0.1", {"/srv/" + std::to_string(i)}, 30s, true});
    }));
  for (std::size_t i = 0; i < probes.size(); ++i)
    CHECK(probes[i].get().access == std::vector<ExportAccess>{{"/srv/" + std::to_string(i), true, "", "127.0.0.1"}});
  // The server in this process closes its end when it sees that of the last child closed.
  for (const auto end = deadline_in(30s); descriptors() != before && Clock::now() < end;)
    std::this_thread::yield();
  CHECK(descriptors() == before);
}

TEST_CASE("without descriptors a server cannot be asked, and that is what is said") {
  Server server;
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const NfsProbe result = probe(server, {"127.0.0.1", {}, 50ms, true});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(result.failing() != nullptr);
  CHECK(result.failing()->detail.starts_with("this host could not ask: "));
  CHECK(result.failing()->detail.ends_with("Too many open files"));
}

TEST_CASE("version 3 without a portmapper or mountd is a failure that names its cause", "[waits]") {
  Server server;
  SECTION("no portmapper") {
    const NfsProbe result = ask({"127.0.0.1", {}, 30s, true}, {server.nfs_port.port(), closed_port()});
    CHECK(outcomes(result) == "ok ok failed skipped ok ok skipped skipped");
    CHECK(result.failing(3)->stage == ProbeStage::portmapper);
    CHECK(result.failing(3)->cause.starts_with("rpcbind is not running"));
    CHECK(result.usable(4));
  }
  SECTION("no portmapper, and none is needed because mountd's port is given") {
    const NfsPorts ports{server.nfs_port.port(), closed_port(), server.mountd_port.port()};
    const NfsProbe result = ask({"127.0.0.1", {"/srv/a"}, 30s, true}, ports);
    CHECK(outcomes(result) == "ok ok ok ok ok ok ok ok");
    CHECK(result.access[0].allowed);
  }
  SECTION("no mountd") {
    server.has_mountd = false;
    const NfsProbe result = probe(server);
    CHECK(outcomes(result) == "ok ok ok failed ok ok skipped skipped");
    CHECK(result.failing(3)->detail == "not registered with the portmapper");
  }
  SECTION("mountd does not answer") {
    server.mountd = Kind::silence;
    const NfsProbe result = probe(server, {"127.0.0.1", {}, 2s, true});
    CHECK(outcomes(result) == "ok ok ok failed ok ok skipped skipped");
    CHECK(result.failing(3)->cause.starts_with("rpc.mountd hangs"));
  }
  SECTION("mountd hangs up") {
    server.mountd = Kind::hang_up;
    CHECK(outcomes(probe(server)) == "ok ok ok failed ok ok skipped skipped");
  }
}

TEST_CASE("the host is up, and nobody listens") {
  const NfsProbe result = ask({"127.0.0.1", {}, 30s, true}, {closed_port(), closed_port()});
  CHECK(outcomes(result) == "ok failed skipped skipped skipped skipped skipped skipped");
  REQUIRE(result.failing() != nullptr);
  CHECK(result.failing()->stage == ProbeStage::connect);
  CHECK(result.failing()->detail.ends_with("Connection refused"));
  CHECK(result.failing()->cause == "the host is up, but no NFS server is running there");
  CHECK_FALSE(result.failing()->hint.empty());
}

// No bound on the time: without the deadline this one would never end.
TEST_CASE("a server that accepts and says nothing takes no longer than the deadline", "[waits]") {
  Server server;
  server.nfs = server.portmapper = Kind::silence;
  const NfsProbe result = probe(server, {"127.0.0.1", {}, 1s, true});
  CHECK(outcomes(result) == "ok ok failed skipped failed failed skipped skipped");
  CHECK(stage(result, ProbeStage::nfs3).detail.starts_with("no answer within"));
  CHECK(stage(result, ProbeStage::nfs3).cause.find("hangs") != std::string::npos);
  CHECK_FALSE(result.usable());
}

TEST_CASE("what is no NFS server is told so") {
  Server server;
  server.nfs = Kind::hang_up;
  server.portmapper = Kind::hang_up;
  const NfsProbe result = probe(server);
  CHECK(outcomes(result) == "ok ok failed skipped failed failed skipped skipped");
  CHECK(result.failing(4)->cause == "what answers there is not a sound NFS server");
}

TEST_CASE("an answer that is too long, cut or nonsense is a failure and no more") {
  Server server;
  SECTION("half a port") {
    FakeRpcServer broken([](const RpcCall&) { return RpcAnswer{Kind::result, {"\0\0", 2}}; });
    CHECK(outcomes(ask({"127.0.0.1", {}, 30s, true}, {server.nfs_port.port(), broken.port()}))
              .starts_with("ok ok failed skipped ok ok"));
  }
}

TEST_CASE("names") {
  const NfsProbe unknown = ask({"no-such-host.invalid", {}, 1000ms, true});
  CHECK(outcomes(unknown).starts_with("failed skipped skipped"));
  CHECK(unknown.failing()->stage == ProbeStage::resolve);
  CHECK_FALSE(unknown.failing()->hint.empty());
  Server server;
  CHECK(probe(server, {"localhost", {}, 30s, true}).usable(4)); // also where ::1 comes first and is refused
  CHECK(probe(server, {"", {}, 1000ms, true}).failing()->stage == ProbeStage::resolve);
}

TEST_CASE("the names of stages and outcomes are those of the JSON output") {
  CHECK(std::string(to_string(ProbeStage::nfs3)) == "nfs3");
  CHECK(std::string(to_string(ProbeStage::access)) == "access");
  CHECK(std::string(to_string(StageOutcome::absent)) == "absent");
}

TEST_CASE("each stage that fails has a usual cause and a cure, by what happened or else by the whole") {
  for (auto stage = 0U; stage < k_stage_count; ++stage)
    for (auto fault = Fault::no_such_name; fault <= Fault::status; fault = Fault(static_cast<int>(fault) + 1)) {
      const auto failed = failed_stage(ProbeStage(stage), {fault, EIO}, 2049);
      INFO(to_string(failed.stage) << ": " << failed.detail);
      CHECK((!failed.cause.empty() && !failed.hint.empty()));
    }
  const auto cause = [](ProbeStage stage, const ServerAnswer& answer) {
    return failed_stage(stage, answer, 111).cause;
  };
  using enum ProbeStage;
  CHECK(cause(portmapper, {Fault::timeout}) == "rpcbind accepts connections but hangs");
  CHECK(cause(portmapper, {Fault::connection, ETIMEDOUT}).starts_with("a firewall drops packets to TCP port 111"));
  CHECK(cause(connect, {Fault::connection, EHOSTUNREACH}).starts_with("no machine answers at this address"));
  CHECK(cause(mountd, {Fault::connection, ENETDOWN}) == "the port cannot be reached");
  CHECK(cause(mountd, {Fault::closed}) == "what answers there is not a sound NFS server");
  CHECK(cause(connect, {Fault::not_asked, EMFILE}).starts_with("this host lacks memory"));
  CHECK(cause(resolve, {Fault::name_service}) == "the name service failed");
  CHECK(failed_stage(connect, {Fault::connection, ETIMEDOUT, 2s}, 2049).detail ==
        "TCP port 2049: no answer within 2.0 s");
}

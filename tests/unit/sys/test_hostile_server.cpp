// A server that sends whatever it likes: the probe says which stage failed, within its time, and goes on.
#include "sys/nfs/nfs_probe.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using test::FakeRpcServer;
using test::RpcAnswer;
using test::RpcCall;
using test::Xdr;

namespace {

using Kind = RpcAnswer::Kind;
constexpr std::uint32_t k_many = 0x40000001; ///< times four it is 4, to who multiplies in 32 bits
constexpr std::uint32_t k_endless = 9U << 20U;

struct Attack {
  std::string name;
  Kind kind;
  std::string bytes;
};

/// `words` again and again: more than a probe may take.
std::string endless(const Xdr& words) {
  std::string block, bytes;
  while (block.size() < 4096)
    block += words.bytes();
  while (bytes.size() < k_endless)
    bytes += block;
  return bytes;
}

/// What may stand in for every reply: bytes after the record mark, after the xid, and as a result.
std::vector<Attack> attacks_on_every_reply() {
  std::vector<Attack> all;
  for (const std::uint32_t length : {404U, 0x7FFFFFFFU, 0xFFFFFFFCU, 0xFFFFFFFFU}) {
    const std::string text = std::to_string(length);
    all.push_back({"verifier of " + text, Kind::reply, Xdr().word(1).word(0).word(0).word(length).bytes()});
    all.push_back({"record of " + text, Kind::bytes, Xdr().word(length).bytes() + std::string(4096, 'x')});
  }
  all.push_back({"verifier longer than allowed", Kind::reply,
                 Xdr().word(1).word(0).word(0).text(std::string(5000, 'v')).word(0).bytes()});
  all.push_back({"cut after the xid", Kind::reply, ""});
  all.push_back({"no reply but a call", Kind::reply, Xdr().word(0).word(2).bytes()});
  all.push_back({"denied, without a reason", Kind::reply, Xdr().word(1).word(1).bytes()});
  all.push_back({"denied: wrong credentials", Kind::reply, Xdr().word(1).word(1).word(1).word(5).bytes()});
  all.push_back({"unknown state of acceptance", Kind::reply, Xdr().word(1).word(0).word(0).word(0).word(77).bytes()});
  all.push_back({"fragments without end", Kind::bytes, endless(Xdr().word(0))});
  all.push_back({"a record without end", Kind::bytes, Xdr().word(k_endless).bytes() + std::string(k_endless, 'x')});
  all.push_back({"a drip", Kind::drip, std::string(4096, '\0')});
  all.push_back({"cut in the record mark", Kind::bytes, std::string(3, '\x80')});
  return all;
}

/// A server that is sound but for one procedure of one program.
struct HostileServer {
  std::uint32_t program, procedure;
  Attack attack;
  FakeRpcServer port{[this](const RpcCall& call) { return serve(call); }};

  [[nodiscard]] RpcAnswer serve(const RpcCall& call) const {
    if (call.program == program && call.procedure == procedure)
      return {attack.kind, attack.bytes};
    Xdr answer;
    if (call.program == 100000) // portmapper: DUMP
      answer.word(1)
          .word(100003)
          .word(3)
          .word(6)
          .word(port.port())
          .word(1)
          .word(100005)
          .word(3)
          .word(6)
          .word(port.port());
    else if (call.program == 100005 && call.procedure == 5)
      answer.word(1).text("/srv/a").word(0);
    else if (call.program == 100005 && call.procedure == 1)
      return {Kind::result, answer.word(0).text("handle").word(1).word(1).bytes()};
    else
      return {Kind::result, {}};
    return {Kind::result, answer.word(0).bytes()};
  }
};

NfsProbe ask(const HostileServer& server, std::chrono::milliseconds timeout) {
  return probe_nfs_server({"127.0.0.1", {"/srv/a"}, timeout, true}, {server.port.port(), server.port.port()});
}

void check_failure(std::uint32_t program, std::uint32_t procedure, ProbeStage stage, const Attack& attack) {
  INFO(attack.name << ", program " << program << ", procedure " << procedure);
  const HostileServer server{program, procedure, attack};
  const NfsProbe probe = ask(server, attack.kind == Kind::drip ? 100ms : 10s);
  REQUIRE(probe.stages.size() == 8);
  const StageResult& failed = probe.stages[static_cast<std::size_t>(stage)];
  CHECK(failed.outcome != StageOutcome::ok);
  CHECK(probe.exports.size() <= 1);
  if (program == 100005)
    CHECK(std::none_of(probe.access.begin(), probe.access.end(), [](const ExportAccess& one) { return one.allowed; }));
}

} // namespace

TEST_CASE("hostile replies to every call of a probe") {
  struct Call {
    std::uint32_t program, procedure;
    ProbeStage stage;
  };
  const auto attacks = attacks_on_every_reply();
  for (const Call& call :
       {Call{100003, 0, ProbeStage::nfs3}, Call{100000, 4, ProbeStage::portmapper}, Call{100005, 0, ProbeStage::mountd},
        Call{100005, 5, ProbeStage::exports}, Call{100005, 1, ProbeStage::access}})
    for (const Attack& attack : attacks)
      check_failure(call.program, call.procedure, call.stage, attack);
}

TEST_CASE("hostile lists, names and handles") {
  const auto result = [](const std::string& name, const Xdr& body) { return Attack{name, Kind::result, body.bytes()}; };
  const auto raw = [](const std::string& name, std::string bytes) {
    return Attack{name, Kind::result, std::move(bytes)};
  };
  const std::string handle = Xdr().word(0).text("handle").bytes();
  for (const std::uint32_t count : {k_many, 0x3FFFFFFFU, 0xFFFFFFFFU, 100U})
    check_failure(100005, 1, ProbeStage::access,
                  raw("flavors " + std::to_string(count), handle + Xdr().word(count).word(1).bytes()));
  for (const std::uint32_t length : {65U, 0x7FFFFFFFU, 0xFFFFFFFDU, 0xFFFFFFFFU}) {
    const std::string text = std::to_string(length);
    check_failure(100005, 1, ProbeStage::access, result("handle of " + text, Xdr().word(0).word(length)));
    check_failure(100005, 5, ProbeStage::exports, result("directory of " + text, Xdr().word(1).word(length)));
    check_failure(100005, 5, ProbeStage::exports,
                  result("client of " + text, Xdr().word(1).text("/x").word(1).word(length)));
  }
  check_failure(100005, 1, ProbeStage::access,
                result("long handle", Xdr().word(0).text(std::string(5000, 'h')).word(0)));
  check_failure(100005, 5, ProbeStage::exports,
                result("long directory", Xdr().word(1).text(std::string(5000, 'd')).word(0).word(0)));
  check_failure(100005, 5, ProbeStage::exports, raw("exports without end", endless(Xdr().word(1).text("/x").word(0))));
  check_failure(100005, 5, ProbeStage::exports,
                raw("clients without end", Xdr().word(1).text("/x").bytes() + endless(Xdr().word(1).text("c"))));
  check_failure(100005, 5, ProbeStage::exports, result("neither end nor more", Xdr().word(2)));
  check_failure(100000, 4, ProbeStage::portmapper,
                raw("mappings without end", endless(Xdr().word(1).word(1).word(1).word(6).word(1))));
  check_failure(100000, 4, ProbeStage::portmapper, result("half a mapping", Xdr().word(1).word(100003)));
}

TEST_CASE("a child that dies while it reads a reply is a failure of that stage, and what it had found out is kept") {
  const int signal = GENERATE(SIGSEGV, SIGKILL, SIGSYS);
  const auto kill_children = [signal](const RpcCall& call) -> RpcAnswer {
    if (call.program == 100000)
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream children(task.path() / "children");
        for (pid_t child = 0; children >> child;)
          ::kill(child, signal);
      }
    return {Kind::result, {}};
  };
  const FakeRpcServer server(kill_children);
  const NfsProbe probe = probe_nfs_server({"127.0.0.1", {}, 10s, true}, {server.port(), server.port()});
  CHECK((probe.v3 && probe.v4));
  CHECK(probe.usable(4));
  REQUIRE(probe.failing(3) != nullptr);
  CHECK(probe.failing(3)->stage == ProbeStage::portmapper);
  CHECK(probe.failing(3)->detail == "the server sent a reply that cannot be read");
}

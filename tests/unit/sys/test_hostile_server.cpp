// A server that sends whatever it likes: the probe says which stage failed, within its time, and goes on.
#include "sys/nfs/nfs_probe.hpp"

#include "base/text.hpp"
#include "fake_rpc_server.hpp"
#include "support/catch.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sys/wait.h>

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
  all.push_back({"cut after the xid", Kind::reply, ""});
  all.push_back({"no reply but a call", Kind::reply, Xdr().word(0).word(2).bytes()});
  all.push_back({"denied, without a reason", Kind::reply, Xdr().word(1).word(1).bytes()});
  all.push_back({"denied: wrong credentials", Kind::reply, Xdr().word(1).word(1).word(1).word(5).bytes()});
  all.push_back({"unknown state of acceptance", Kind::reply, Xdr().word(1).word(0).word(0).word(0).word(77).bytes()});
  all.push_back({"a drip", Kind::drip, std::string(4096, '\0')});
  all.push_back({"cut in the record mark", Kind::bytes, std::string(3, '\x80')});
  return all;
}

/// The bytes of a question for the root of NFS 4. Longer ones look up a path, which only version 3 has.
constexpr std::size_t k_root = 28;

/// A server that is sound but for one procedure of one program.
struct HostileServer {
  std::uint32_t program, procedure;
  Attack attack;
  /// A call to NFS, the portmapper or mountd, and its answer.
  std::function<RpcAnswer(const RpcCall&, RpcAnswer)> change = [this](const RpcCall& call, RpcAnswer sound) {
    const bool attacked = call.program == program && call.procedure == procedure;
    return attacked ? RpcAnswer{attack.kind, attack.bytes} : sound;
  };
  FakeRpcServer port{[this](const RpcCall& call) { return change(call, serve(call)); }};

  [[nodiscard]] RpcAnswer serve(const RpcCall& call) const {
    Xdr answer;
    if (call.program == 100000) // portmapper: GETPORT
      return {Kind::result, answer.word(port.port()).bytes()};
    if (call.program == 100005 && call.procedure == 5)
      answer.word(1).text("/srv/a").word(0);
    else if (call.program == 100005 && call.procedure == 1)
      return {Kind::result, answer.word(0).text("handle").word(1).word(1).bytes()};
    else
      return call.program == 100003 && call.procedure == 1
                 ? test::compound_answer(k_root < call.argument.size() ? 2 : 0)
                 : RpcAnswer();
    return {Kind::result, answer.word(0).bytes()};
  }
};

NfsProbe ask(const HostileServer& server, std::chrono::milliseconds timeout) {
  return probe_nfs_server({"127.0.0.1", {"/srv/a"}, timeout, true, {server.port.port(), server.port.port()}});
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
  const auto check = [](const std::vector<Attack>& attacks) {
    for (const Call& call : {Call{100003, 0, ProbeStage::nfs3}, Call{100000, 3, ProbeStage::portmapper},
                             Call{100005, 0, ProbeStage::mountd}, Call{100005, 5, ProbeStage::exports},
                             Call{100005, 1, ProbeStage::access}})
      for (const Attack& attack : attacks)
        check_failure(call.program, call.procedure, call.stage, attack);
  };
  check(attacks_on_every_reply());
  // Each alone: a fork costs more the more memory a process has.
  check({{"fragments without end", Kind::bytes, endless(Xdr().word(0))}});
  check({{"a record without end", Kind::bytes, Xdr().word(k_endless).bytes() + std::string(k_endless, 'x')}});
}

TEST_CASE("a verifier that is longer than allowed is passed over") {
  const Attack attack{"", Kind::reply, Xdr().word(1).word(0).word(0).text(std::string(5000, 'v')).word(0).bytes()};
  const HostileServer server{100003, 0, attack};
  const NfsProbe probe = ask(server, 10s);
  CHECK((probe.v3 && probe.v4));
  CHECK(probe.access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1", 3}});
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
  check_failure(100000, 3, ProbeStage::portmapper, raw("half a port", {"\0\0", 2}));
}

namespace {

/// A sound reply, damaged somewhere: words that are counts or lengths get odd values, bytes change, the end is missing.
std::string damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  static constexpr std::array<std::uint32_t, 8> k_odd{0, 1, 2, 65, 0x3FFFFFFF, k_many, 0x7FFFFFFF, 0xFFFFFFFF};
  for (std::size_t times = 1 + below(3); times > 0; --times) {
    const std::size_t words = bytes.size() / 4;
    switch (below(4)) {
    case 0:
      bytes.resize(below(bytes.size() + 1));
      break;
    case 1:
      if (!bytes.empty())
        bytes[below(bytes.size())] = static_cast<char>(below(256));
      break;
    case 2:
      bytes += Xdr().word(k_odd[below(k_odd.size())]).bytes() + std::string(below(64), 'x');
      break;
    default:
      if (words > 0)
        bytes.replace(4 * below(words), 4, Xdr().word(k_odd[below(k_odd.size())]).bytes());
    }
  }
  return bytes;
}

std::optional<ProbeStage> stage_of(const RpcCall& call) {
  if (call.program == 100003)
    return call.version == 3 ? ProbeStage::nfs3 : ProbeStage::nfs4;
  if (call.program == 100000)
    return ProbeStage::portmapper;
  if (call.procedure == 3)
    return std::nullopt; // UMNT, whose answer says nothing
  return call.procedure == 0 ? ProbeStage::mountd : call.procedure == 5 ? ProbeStage::exports : ProbeStage::access;
}

/// What came before each is known, in time, and only the child is touched.
void check_damaged_replies(std::size_t wanted) {
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto descriptors_before = descriptors();
  std::mt19937 random(1); // the same replies each time
  std::size_t replies = 0;
  std::set<ProbeStage> attacked;
  const auto damage = [&](const RpcCall& call, RpcAnswer sound) -> RpcAnswer {
    if (random() % 4 == 0)
      return sound;
    ++replies;
    if (const auto stage = stage_of(call))
      attacked.insert(*stage);
    const std::string reply = Xdr().word(1).word(0).word(0).word(0).word(0).bytes();
    return {Kind::reply, damaged(reply + sound.result, random)};
  };
  while (replies < wanted) {
    const HostileServer server{0, 0, {}, damage}; // another each time: it keeps its threads
    for (int probes = 0; probes < 50 && replies < wanted; ++probes) {
      FakeRpcServer::between_answers([&] { attacked.clear(); });
      const NfsProbe probe = ask(server, 10s);
      const auto stages = FakeRpcServer::between_answers([&] { return attacked; });
      REQUIRE(probe.took < 10s);
      REQUIRE(probe.stages.size() == 8);
      for (const ProbeStage stage : {ProbeStage::nfs3, ProbeStage::nfs4, ProbeStage::portmapper}) {
        if (stages.contains(stage))
          break;
        REQUIRE(probe.stages[static_cast<std::size_t>(stage)].outcome == StageOutcome::ok);
      }
      for (const ExportListing& one : probe.exports)
        REQUIRE((one.directory.size() <= 1024 && std::ranges::none_of(one.directory, is_control)));
    }
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1); // no child is left
  CHECK(errno == ECHILD);
  CHECK(descriptors() == descriptors_before);
  const HostileServer sound{0, 0, {}};
  CHECK(ask(sound, 10s).access == std::vector<ExportAccess>{{"/srv/a", true, "", "127.0.0.1", 3}});
}

} // namespace

TEST_CASE("300 damaged replies", "[fork]") {
  check_damaged_replies(300);
}

TEST_CASE("10,000 damaged replies", "[fork][long]") {
  check_damaged_replies(10'000);
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
    return call.procedure == 1 ? test::compound_answer() : RpcAnswer();
  };
  const FakeRpcServer server(kill_children);
  const NfsProbe probe = probe_nfs_server({"127.0.0.1", {}, 10s, true, {server.port(), server.port()}});
  CHECK((probe.v3 && probe.v4));
  CHECK(probe.usable(4));
  REQUIRE(probe.failing(3) != nullptr);
  CHECK(probe.failing(3)->stage == ProbeStage::portmapper);
  CHECK(probe.failing(3)->detail == "the server sent a reply that cannot be read");
}

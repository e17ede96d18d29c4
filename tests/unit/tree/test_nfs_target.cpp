// Files by calls to an NFS server: which mounts it is for, and what becomes of calls that fail. The lab copies whole
// trees to the kernel's server (tests/lab/test_tree_engine.py).
#include "tree/nfs_target.hpp"

#include "given_tree.hpp"
#include "unit/sys/fake_rpc_server.hpp"

using namespace sharefs;
using namespace sharefs::test;
using namespace std::chrono_literals;
using tree::NfsTarget;

namespace {

constexpr const char* k_mount = "rw,vers=3,rsize=1048576,wsize=65536,namlen=255,hard,proto=tcp,timeo=600,retrans=2,"
                                "sec=sys,mountaddr=10.77.0.1,mountvers=3,mountport=20048,mountproto=udp,"
                                "local_lock=all,addr=10.77.0.1";

std::string why_not(const std::string& type, std::string options, const std::string& from = "",
                    const std::string& to = "") {
  if (!from.empty())
    options.replace(options.find(from), from.size(), to);
  const auto route = tree::nfs_route(type, options);
  return route ? "possible" : route.error();
}

/// A server that makes any file.
struct Server {
  explicit Server(std::function<std::optional<RpcAnswer>(const RpcCall&)> instead) : m_instead(std::move(instead)) {}
  std::map<std::uint32_t, int> calls;

  [[nodiscard]] NfsTarget target() {
    auto connected = sys::connect_tcp(*sys::resolve_host("127.0.0.1"), m_server.port(), sys::deadline_in(10s));
    REQUIRE(connected);
    return NfsTarget(std::make_unique<sys::RpcPipeline>(std::move(connected->fd), "", 10s));
  }

 private:
  RpcAnswer serve(const RpcCall& call) {
    ++calls[call.procedure];
    if (auto answer = m_instead(call))
      return *answer;
    Xdr attributes;
    attributes.word(1).word(1).word(0100644).word(1);
    for (int i = 0; i < 18; ++i)
      attributes.word(0);
    Xdr result;
    result.word(0);
    if (call.procedure == 8)
      result.word(1).text("handle").raw(attributes.bytes());
    result.word(0);
    if (call.procedure == 8)
      result.word(0);
    else
      result.raw(attributes.bytes());
    if (call.procedure == 7)
      result.word(5).word(2).word(0).word(0);
    if (call.procedure == 6)
      result = Xdr().word(0).word(0).word(5).word(1).text("hello");
    return {RpcAnswer::Kind::result, result.bytes()};
  }
  std::function<std::optional<RpcAnswer>(const RpcCall&)> m_instead;
  FakeRpcServer m_server{[this](const RpcCall& call) { return serve(call); }};
};

struct Outcome {
  bool made = false, done = false;
};

/// What becomes of one file of five bytes, and of its times.
Outcome write_one(Server& server) {
  auto target = server.target();
  NfsTarget::File file{"name", "hello", 0644, {}, {}};
  NfsTarget::File* files[]{&file};
  target.make("directory", files);
  if (file.done)
    target.give_times(files);
  return {file.made, file.done};
}

RpcAnswer status(std::uint32_t nfsstat3) {
  return {RpcAnswer::Kind::result, Xdr().word(nfsstat3).word(0).word(0).bytes()};
}

} // namespace

TEST_CASE("NFS calls are for mounts over TCP, with AUTH_SYS") {
  const auto route = tree::nfs_route("nfs", k_mount);
  REQUIRE(route);
  CHECK((route->address == "10.77.0.1" && route->port == 2049 && route->size == 65536));
  const auto other = tree::nfs_route("nfs", std::string(k_mount) + ",port=20490,nconnect=4");
  CHECK((other && other->port == 20490));
  CHECK(why_not("ext4", "rw") == "it is on ext4, not on NFS");
  CHECK(why_not("nfs4", k_mount, "vers=3", "vers=4.2") == "possible");
  CHECK(why_not("nfs", k_mount, "vers=3", "vers=2") == "it is mounted with NFS version 2");
  CHECK(why_not("nfs", k_mount, "proto=tcp", "proto=rdma") == "it is mounted over rdma, not TCP");
  CHECK(why_not("nfs", k_mount, "proto=tcp", "proto=tcp6") == "possible");
  CHECK(why_not("nfs", k_mount, "sec=sys", "sec=krb5p") == "it is mounted with other security than sec=sys");
  CHECK(why_not("nfs", k_mount, "sec=sys", "sec=sys,xprtsec=tls") == "it is mounted with other security than sec=sys");
  CHECK(why_not("nfs", k_mount, ",addr=10.77.0.1") == "the kernel does not say which server it is mounted from");
  CHECK(why_not("nfs", k_mount, "wsize=65536", "wsize=x") == "the kernel does not say which server it is mounted from");
  const auto small = tree::nfs_route("nfs", std::string("rsize=4096,") + k_mount);
  CHECK((small && small->size == 4096)); // what it takes and gives
}

TEST_CASE("the server's handle in the kernel's, or nothing") {
  const auto kernel = [](std::uint32_t high, std::uint32_t low, std::uint32_t type, std::uint16_t size,
                         const std::string& rest) {
    std::string bytes;
    for (const auto word : {high, low, type})
      bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
    return bytes.append(reinterpret_cast<const char*>(&size), sizeof size) + rest;
  };
  constexpr ino_t k_inode = (7ULL << 32U) + 9;
  CHECK(tree::server_handle(kernel(7, 9, S_IFDIR, 6, "handle"), k_inode) == "handle");
  CHECK(tree::server_handle(kernel(7, 9, S_IFDIR, 5, std::string("handl\0", 6)), k_inode) == "handl");
  CHECK_FALSE(tree::server_handle(kernel(7, 8, S_IFDIR, 6, "handle"), k_inode)); // another inode
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFREG, 6, "handle"), k_inode)); // another type
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 0, ""), k_inode));
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 65, std::string(66, 'h')), k_inode));
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 60, "handle"), k_inode)); // shorter than it says
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 6, "handle1234"), k_inode));
  CHECK_FALSE(tree::server_handle("", k_inode));
  const GivenTree given; // no NFS: no such handle
  const sys::Fd here(::open(given.from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CHECK(NfsTarget::handle_of(here.get()).empty());
}

TEST_CASE("JUKEBOX is asked again; every other failure leaves the file to others") {
  int jukebox = 2;
  Server patient([&](const RpcCall&) { return --jukebox >= 0 ? std::optional(status(10008)) : std::nullopt; });
  CHECK(write_one(patient).done);
  CHECK(patient.calls == std::map<std::uint32_t, int>{{8, 3}, {7, 1}, {2, 1}});

  const auto at = [](std::uint32_t procedure, RpcAnswer answer) {
    Server server(
        [=](const RpcCall& call) { return call.procedure == procedure ? std::optional(answer) : std::nullopt; });
    return write_one(server);
  };
  const auto exists = at(8, status(17));
  CHECK_FALSE((exists.made || exists.done)); // it is not ours
  const auto unknown = at(8, {RpcAnswer::Kind::hang_up, ""});
  CHECK((unknown.made && !unknown.done)); // it may be there
  const auto bare = at(8, {RpcAnswer::Kind::result, Xdr().word(0).word(0).word(0).word(0).word(0).bytes()});
  CHECK((bare.made && !bare.done)); // without a handle
  for (const std::uint32_t procedure : {7U, 2U}) {
    for (const auto& answer :
         {status(28), RpcAnswer{RpcAnswer::Kind::hang_up, ""}, RpcAnswer{RpcAnswer::Kind::result, "nonsense"}}) {
      const auto outcome = at(procedure, answer);
      CHECK((outcome.made && !outcome.done));
    }
  }
  const auto half = at(7, {RpcAnswer::Kind::result,
                           Xdr().word(0).word(0).word(0).word(4).word(2).word(0).word(0).bytes()}); // 4 of 5 bytes
  CHECK((half.made && !half.done));
  const auto unsafe = at(
      7, {RpcAnswer::Kind::result, Xdr().word(0).word(0).word(0).word(5).word(0).word(0).word(0).bytes()}); // UNSTABLE
  CHECK((unsafe.made && !unsafe.done));
}

TEST_CASE("what the server has is read again by one call a file; what does not come whole is not taken for read") {
  const auto read = [](std::function<std::optional<RpcAnswer>(const RpcCall&)> instead) {
    Server server([&](const RpcCall& call) { return call.procedure == 6 ? instead(call) : std::nullopt; });
    auto target = server.target();
    NfsTarget::File one{"one", "hello", 0644, {}, {}};
    NfsTarget::File two{"two", "hallo", 0644, {}, {}};
    NfsTarget::File* files[]{&one, &two};
    target.make("directory", files);
    REQUIRE((one.done && two.done));
    one.content = two.content = "";
    target.read_again(files);
    CHECK(server.calls[6] == 2);
    CHECK(one.read == two.read);
    return one.read ? one.content : std::string("not read");
  };
  const auto some = [](const char* bytes, std::uint32_t size) {
    return RpcAnswer{RpcAnswer::Kind::result, Xdr().word(0).word(0).word(size).word(1).text(bytes).bytes()};
  };
  CHECK(read([](const RpcCall&) { return std::nullopt; }) == "hello");
  CHECK(read([&](const RpcCall&) { return some("other", 5); }) == "other"); // whoever reads it compares it
  CHECK(read([&](const RpcCall&) { return some("hell", 4); }) == "not read");
  CHECK(read([&](const RpcCall&) { return some("hello", 4); }) == "not read");
  CHECK(read([](const RpcCall&) { return status(13); }) == "not read");
}

TEST_CASE("on no NFS `nfs` is refused with the reason and leaves nothing; `auto` copies all the same") {
  const GivenTree given;
  given.many(12);
  const auto error = given.error({.engine = tree::Engine::nfs});
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.message.find("cannot be written by NFS calls: it is on ") != std::string::npos);
  CHECK_FALSE(error.hint.empty());
  CHECK_FALSE(std::filesystem::exists(given.to));
  const auto report = given.copy({.engine = tree::Engine::automatic});
  CHECK((report.files == 12 && report.by_nfs == 0 && !report.nfs));
  CHECK(report.engine_reason.starts_with("it is on "));
  CHECK(given.differences().empty());
}

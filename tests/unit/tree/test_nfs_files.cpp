// Files by calls to an NFS server: which mounts it is for, and what becomes of calls that fail. The lab copies whole
// trees to the kernel's server (tests/lab/test_tree_engine.py).
#include "tree/nfs_files.hpp"

#include "given_tree.hpp"
#include "unit/sys/fake_rpc_server.hpp"

using namespace sharefs;
using namespace sharefs::test;
using namespace std::chrono_literals;
using tree::NfsFiles;

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

/// Of an empty file of 1970 without a number, and one thing that is otherwise: the number of a word, and its value.
Xdr fattr(std::size_t number = 0, std::uint32_t other = 1) {
  Xdr attributes;
  attributes.word(1); // they follow
  for (std::size_t i = 0; i < 21; ++i) {
    constexpr std::array<std::uint32_t, 3> k_first{1, 0100644, 1}; // kind, mode, names
    attributes.word(i == number ? other : i < k_first.size() ? k_first[i] : 0);
  }
  return attributes;
}

/// A server that makes any file, and of which each has the content "hello".
struct Server {
  explicit Server(std::function<std::optional<RpcAnswer>(const RpcCall&)> instead) : m_instead(std::move(instead)) {}
  std::map<std::uint32_t, int> calls;

  [[nodiscard]] NfsFiles target() {
    auto connected = sys::connect_tcp(*sys::resolve_host("127.0.0.1"), m_server.port(), sys::deadline_in(10s));
    REQUIRE(connected);
    return NfsFiles(std::make_unique<sys::RpcPipeline>(std::move(connected->fd), "", 10s));
  }

 private:
  RpcAnswer serve(const RpcCall& call) {
    ++calls[call.procedure];
    if (auto answer = m_instead(call))
      return *answer;
    const Xdr attributes = fattr();
    Xdr result;
    result.word(0);
    if (call.procedure == 8)
      result.word(1).text("handle").raw(attributes.bytes());
    if (call.procedure != 6) // what it was before
      result.word(0);
    if (call.procedure == 8)
      result.word(0);
    else
      result.raw(attributes.bytes());
    if (call.procedure == 7)
      result.word(5).word(2).word(0).word(0);
    if (call.procedure == 6)
      result.word(5).word(1).text("hello");
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
  NfsFiles::File file{"name", "hello", 0644, {}, {}};
  NfsFiles::File* files[]{&file};
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
  struct stat directory{};
  directory.st_ino = (7ULL << 32U) + 9;
  directory.st_mode = S_IFDIR | 0755;
  CHECK(tree::server_handle(kernel(7, 9, S_IFDIR, 6, "handle"), directory) == "handle");
  CHECK(tree::server_handle(kernel(7, 9, S_IFDIR, 5, std::string("handl\0", 6)), directory) == "handl");
  CHECK_FALSE(tree::server_handle(kernel(7, 8, S_IFDIR, 6, "handle"), directory)); // another inode
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFREG, 6, "handle"), directory)); // another type
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 0, ""), directory));
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 65, std::string(66, 'h')), directory));
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 60, "handle"), directory)); // shorter than it says
  CHECK_FALSE(tree::server_handle(kernel(7, 9, S_IFDIR, 6, "handle1234"), directory));
  CHECK_FALSE(tree::server_handle("", directory));
  directory.st_mode = S_IFREG | 0644;
  CHECK(tree::server_handle(kernel(7, 9, S_IFREG, 6, "handle"), directory) == "handle");
  const GivenTree given; // no NFS: no such handle
  const sys::Fd here(::open(given.from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Server server([](const RpcCall&) { return std::nullopt; });
  CHECK(server.target().handle_of(here.get(), "", status_of(given.from)).empty());
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

TEST_CASE("what was written is read by one call a file; what does not come whole is not taken for read") {
  const auto read = [](std::function<std::optional<RpcAnswer>(const RpcCall&)> instead) {
    Server server([&](const RpcCall& call) { return call.procedure == 6 ? instead(call) : std::nullopt; });
    auto files = server.target();
    NfsFiles::File one{"one", "hello", 0644, {}, {}};
    NfsFiles::File two{"two", "hallo", 0644, {}, {}};
    NfsFiles::File* both[]{&one, &two};
    files.make("directory", both);
    REQUIRE((one.done && two.done));
    one.content = two.content = "";
    files.read(both);
    CHECK(server.calls[6] == 2);
    CHECK(one.read == two.read);
    return one.read ? one.content : std::string("not read");
  };
  const auto some = [](const char* bytes, std::uint32_t size) {
    return RpcAnswer{RpcAnswer::Kind::result,
                     Xdr().word(0).raw(fattr().bytes()).word(size).word(1).text(bytes).bytes()};
  };
  CHECK(read([](const RpcCall&) { return std::nullopt; }) == "hello");
  CHECK(read([&](const RpcCall&) { return some("other", 5); }) == "other"); // whoever reads it compares it
  CHECK(read([&](const RpcCall&) { return some("hell", 4); }) == "not read");
  CHECK(read([&](const RpcCall&) { return some("hello.", 6); }) == "not read"); // more than was asked for
  CHECK(read([&](const RpcCall&) { return some("hello", 4); }) == "not read");
  CHECK(read([](const RpcCall&) { return status(13); }) == "not read");
  // The server need not say what it was read from, but then it is not known.
  CHECK(read([](const RpcCall&) {
          return RpcAnswer{RpcAnswer::Kind::result, Xdr().word(0).word(0).word(5).word(1).text("hello").bytes()};
        }) == "not read");
}

TEST_CASE("what is read is of the file that was there before, in the state in which it was, without an ACL") {
  // What READ and GETACL reply instead; how often READ was asked.
  const auto read = [](const std::optional<RpcAnswer>& of_read, const std::optional<RpcAnswer>& of_acl = {},
                       int jukebox = 0) {
    Server server([&](const RpcCall& call) {
      if (call.program == 100003)
        return --jukebox >= 0 ? std::optional(status(10008)) : of_read;
      const auto mode = Xdr().word(0).raw(fattr().bytes()).word(1).word(3).word(3).bytes() +
                        Xdr().word(1).word(0).word(6).word(4).word(0).word(4).word(32).word(0).word(4).bytes();
      return of_acl ? of_acl : RpcAnswer{RpcAnswer::Kind::result, mode};
    });
    auto files = server.target();
    NfsFiles::File file;
    file.handle = "handle";
    file.size = 5;
    file.attributes.st_mode = S_IFREG | 0644;
    NfsFiles::File* one[]{&file};
    files.read(one, true);
    return file.read && file.content == "hello";
  };
  const auto of = [](std::size_t number, std::uint32_t other) {
    return RpcAnswer{RpcAnswer::Kind::result,
                     Xdr().word(0).raw(fattr(number, other).bytes()).word(5).word(1).text("hello").bytes()};
  };
  CHECK(read({}));
  CHECK(read({}, {}, 2)); // JUKEBOX
  // Kind, mode, size, number, times of change of the content and of the file
  for (const auto& [number, other] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {0, 5}, {1, 0600}, {6, 1}, {14, 1}, {17, 1}, {18, 1}, {19, 1}, {20, 1}}) {
    CAPTURE(number);
    CHECK_FALSE(read(of(number, other)));
  }
  CHECK(read(of(15, 1))); // the time of the last reading
  for (const auto& answer :
       {status(13), status(70), RpcAnswer{RpcAnswer::Kind::hang_up, ""}, RpcAnswer{RpcAnswer::Kind::no_program, ""},
        RpcAnswer{RpcAnswer::Kind::result, "nonsense"}}) {
    CHECK_FALSE(read(answer));
    CHECK_FALSE(read({}, answer));
  }
  const auto acl = [](std::size_t number, std::uint32_t other, std::uint32_t tag) {
    return RpcAnswer{RpcAnswer::Kind::result,
                     Xdr().word(0).raw(fattr(number, other).bytes()).word(1).word(4).word(4).bytes() +
                         Xdr().word(1).word(0).word(6).word(4).word(0).word(4).bytes() +
                         Xdr().word(tag).word(0).word(4).word(32).word(0).word(4).bytes()};
  };
  CHECK(read({}, acl(15, 1, 16)));
  CHECK_FALSE(read({}, acl(15, 1, 2)));  // somebody has a right of his own
  CHECK_FALSE(read({}, acl(19, 1, 16))); // it was changed after it was read
}

TEST_CASE("on no NFS `nfs` is refused with the reason and leaves nothing; `auto` copies all the same") {
  const GivenTree given;
  given.many(12);
  const auto error = given.error({.engine = tree::Engine::nfs});
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.message.find("cannot be copied by NFS calls: the copy: it is on ") != std::string::npos);
  CHECK_FALSE(error.hint.empty());
  CHECK_FALSE(std::filesystem::exists(given.to));
  const auto report = given.copy({.engine = tree::Engine::automatic});
  CHECK((report.files == 12 && report.by_nfs == 0 && !report.nfs));
  CHECK(report.read_by_nfs == 0);
  CHECK(report.engine_reason.starts_with("the copy: it is on "));
  CHECK(report.engine_reason.find("; the original: it is on ") != std::string::npos);
  CHECK(given.differences().empty());
}

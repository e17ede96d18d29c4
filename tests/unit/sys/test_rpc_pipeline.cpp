// Many calls on one connection: each gets its own reply, whatever the server sends, and nobody waits for ever.
#include "sys/nfs/rpc_pipeline.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using test::Xdr;

namespace {

constexpr RpcProcedure k_procedure{k_program_nfs, 3, 1};

/// The other end of a connection, by hand.
class Peer {
 public:
  Peer() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    m_fd.reset(ends[0]);
    m_client.reset(ends[1]);
    ::fcntl(m_client.get(), F_SETFL, O_NONBLOCK);
  }
  Fd client() { return std::move(m_client); }
  /// The xid and the argument of the next call; nothing once the client has gone.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> next() {
    const auto mark = read(4);
    const auto call = mark ? read(word(*mark, 0) & 0x7FFFFFFFU) : std::nullopt;
    if (!call)
      return std::nullopt;
    return std::pair(word(*call, 0), word(*call, call->size() / 4 - 1));
  }
  void send(const std::string& bytes) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t count = ::send(m_fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count <= 0)
        return;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void reply(std::uint32_t xid, std::uint32_t result) {
    const auto body = Xdr().word(xid).word(1).word(0).word(0).word(0).word(0).word(result).bytes();
    send(Xdr().word(0x80000000U | static_cast<std::uint32_t>(body.size())).raw(body).bytes());
  }
  [[nodiscard]] bool has_more() const {
    pollfd more{m_fd.get(), POLLIN, 0};
    return ::poll(&more, 1, 0) > 0;
  }
  void hang_up() { m_fd.reset(); }

 private:
  static std::uint32_t word(const std::string& bytes, std::size_t index) {
    std::uint32_t value = 0;
    bytes.copy(reinterpret_cast<char*>(&value), 4, index * 4);
    return ntohl(value);
  }
  std::optional<std::string> read(std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t count = ::recv(m_fd.get(), bytes.data(), size, MSG_WAITALL);
    return count == static_cast<ssize_t>(size) ? std::optional(bytes) : std::nullopt;
  }
  Fd m_fd, m_client;
};

std::vector<RpcPipeline::Call> calls(std::uint32_t count, std::uint32_t first = 0) {
  std::vector<RpcPipeline::Call> all;
  for (std::uint32_t i = 0; i < count; ++i)
    all.push_back({k_procedure, Xdr().word(first + i).bytes()});
  return all;
}

/// Does `serve` in a thread while `ask` is done.
template <class Serve, class Ask> void with(Serve serve, Ask ask) {
  std::thread server(serve);
  ask();
  server.join();
}

/// Both of two calls fail so, and what is called later fails at once.
void check_end(const std::function<void(Peer&, std::uint32_t xid)>& attack, Fault fault) {
  Peer peer;
  RpcPipeline pipeline(peer.client(), "", 30s);
  with(
      [&] {
        const auto first = peer.next(), second = peer.next();
        if (first && second)
          attack(peer, first->first);
      },
      [&] {
        for (const auto& answer : pipeline.call_all(calls(2))) {
          REQUIRE_FALSE(answer);
          CHECK(answer.error().fault == fault);
        }
        CHECK_FALSE(pipeline.works());
        const auto later = pipeline.call_all(calls(1)).front();
        REQUIRE_FALSE(later);
        CHECK(later.error().fault == fault);
      });
}

} // namespace

TEST_CASE("replies in any order find their calls, of several threads") {
  constexpr std::uint32_t k_threads = 4, k_each = 16;
  Peer peer;
  std::atomic<int> seen = 0;
  RpcPipeline pipeline(peer.client(), "", 30s, [&seen] { ++seen; });
  with(
      [&] {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> got;
        while (got.size() < std::size_t{k_threads} * k_each)
          if (const auto call = peer.next())
            got.push_back(*call);
          else
            return;
        for (auto call = got.rbegin(); call != got.rend(); ++call)
          peer.reply(call->first, call->second + 1000);
      },
      [&] {
        std::vector<std::thread> threads;
        std::atomic<int> right = 0;
        for (std::uint32_t thread = 0; thread < k_threads; ++thread)
          threads.emplace_back([&, thread] {
            const auto answers = pipeline.call_all(calls(k_each, thread * 100));
            for (std::uint32_t i = 0; i < k_each; ++i)
              right += answers[i] == Xdr().word(thread * 100 + i + 1000).bytes() ? 1 : 0;
          });
        for (auto& thread : threads)
          thread.join();
        CHECK(right == k_threads * k_each);
      });
  CHECK(seen == k_threads * k_each);
}

TEST_CASE("no more calls are under way than the window has, and all are made") {
  Peer peer;
  RpcPipeline pipeline(peer.client(), "", 30s);
  constexpr std::uint32_t k_count = 3 * RpcPipeline::k_window;
  bool too_many = false;
  with(
      [&] {
        std::vector<std::uint32_t> open;
        for (std::uint32_t done = 0; done < k_count;) {
          while (open.size() < RpcPipeline::k_window) // a smaller window would wait for a reply here
            if (const auto call = peer.next())
              open.push_back(call->first);
            else
              return;
          too_many = too_many || peer.has_more();
          for (const auto xid : open)
            peer.reply(xid, 7);
          done += static_cast<std::uint32_t>(open.size());
          open.clear();
        }
      },
      [&] {
        const auto answers = pipeline.call_all(calls(k_count));
        CHECK(std::all_of(answers.begin(), answers.end(), [](const auto& one) { return one.has_value(); }));
      });
  CHECK_FALSE(too_many);
}

TEST_CASE("a call that is denied fails alone") {
  Peer peer;
  RpcPipeline pipeline(peer.client(), "", 30s);
  with(
      [&] {
        const auto first = peer.next(), second = peer.next();
        if (!first || !second)
          return;
        const auto denied = Xdr().word(first->first).word(1).word(1).word(1).word(5).bytes();
        peer.send(Xdr().word(0x80000000U | static_cast<std::uint32_t>(denied.size())).raw(denied).bytes());
        peer.reply(second->first, 1);
      },
      [&] {
        const auto answers = pipeline.call_all(calls(2));
        REQUIRE_FALSE(answers[0]);
        CHECK(answers[0].error().fault == Fault::refused);
        CHECK(answers[1]);
        CHECK(pipeline.works());
      });
}

TEST_CASE("what a hostile server sends ends the connection, and no call waits") {
  const auto record = [](const std::string& body) {
    return Xdr().word(0x80000000U | static_cast<std::uint32_t>(body.size())).raw(body).bytes();
  };
  const auto accepted = [](std::uint32_t xid) { return Xdr().word(xid).word(1).word(0).word(0).word(0).word(0); };
  check_end([](Peer& peer, std::uint32_t) { peer.reply(0x7777, 1); }, Fault::unreadable); // nobody's
  for (const std::uint32_t mark : {0xFFFFFFFFU, 0x7FFFFFFFU, 0x80041004U})
    check_end([&](Peer& peer, std::uint32_t) { peer.send(Xdr().word(mark).bytes() + std::string(100'000, 'x')); },
              Fault::unreadable);
  check_end(
      [](Peer& peer, std::uint32_t) {
        for (int i = 0; i < 1000; ++i)
          peer.send(Xdr().word(0).bytes()); // fragments without end
      },
      Fault::unreadable);
  check_end([&](Peer& peer, std::uint32_t xid) { peer.send(record(Xdr().word(xid).word(0).word(2).bytes())); },
            Fault::unreadable); // a call
  check_end([&](Peer& peer, std::uint32_t) { peer.send(record("")); }, Fault::unreadable);
  check_end(
      [&](Peer& peer, std::uint32_t xid) {
        peer.send(record(Xdr().word(xid).word(1).word(0).word(0).word(0xFFFFFFFCU).bytes()));
      },
      Fault::unreadable); // its verifier
  check_end(
      [&](Peer& peer, std::uint32_t xid) { // cut off
        peer.send(record(accepted(xid).word(7).bytes()).substr(0, 20));
        peer.hang_up();
      },
      Fault::closed);
  check_end([](Peer& peer, std::uint32_t) { peer.hang_up(); }, Fault::closed);
}

TEST_CASE("a reply twice is one that nobody waits for") {
  Peer peer;
  RpcPipeline pipeline(peer.client(), "", 30s);
  with(
      [&] {
        const auto first = peer.next(), second = peer.next();
        if (!first || !second)
          return;
        peer.reply(first->first, 1);
        peer.reply(first->first, 1);
      },
      [&] {
        const auto answers = pipeline.call_all(calls(2));
        CHECK(answers[0]);
        REQUIRE_FALSE(answers[1]);
        CHECK(answers[1].error().fault == Fault::unreadable);
      });
}

TEST_CASE("a server that says nothing is given up") {
  Peer peer;
  RpcPipeline pipeline(peer.client(), "", 50ms);
  for (const auto& answer : pipeline.call_all(calls(3))) {
    REQUIRE_FALSE(answer);
    CHECK(answer.error().fault == Fault::timeout);
  }
}

#pragma once
// A server of Sun RPC over TCP (RFC 5531) on a loopback port: as much of NFS, mountd and the portmapper as a probe
// asks.
#include <arpa/inet.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sharefs::test {

/// XDR: big-endian words, padded texts.
class Xdr {
 public:
  Xdr& word(std::uint32_t value) {
    const std::uint32_t network = htonl(value);
    m_bytes.append(reinterpret_cast<const char*>(&network), 4);
    return *this;
  }
  Xdr& text(const std::string& value) {
    word(static_cast<std::uint32_t>(value.size()));
    m_bytes += value;
    m_bytes.append((4 - value.size() % 4) % 4, '\0');
    return *this;
  }
  Xdr& raw(const std::string& bytes) {
    m_bytes += bytes;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }

 private:
  std::string m_bytes;
};

struct RpcCall {
  std::uint32_t xid = 0, program = 0, version = 0, procedure = 0;
  std::string argument; ///< as on the wire
  std::uint16_t peer_port = 0;
};

/// What to do with a call: answer with a result, say that the program or version is unknown, hang up, or say nothing.
/// A hostile server chooses all that follows the xid (`reply`), every byte and hangs up (`bytes`), or sends those of a
/// reply one by one (`drip`).
struct RpcAnswer {
  enum class Kind { result, no_program, version_mismatch, hang_up, silence, reply, bytes, drip } kind = Kind::result;
  std::string result;
};

/// What version 4 of NFS says to a compound: its status, an empty tag, and no results of its steps.
inline RpcAnswer compound_answer(std::uint32_t status = 0) {
  return {RpcAnswer::Kind::result, Xdr().word(status).text("").word(0).bytes()};
}

class FakeRpcServer {
 public:
  using Serve = std::function<RpcAnswer(const RpcCall&)>;

  explicit FakeRpcServer(Serve serve, int family = AF_INET) : m_serve(std::move(serve)), m_family(family) {
    m_listener = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{}; // the port of IPv4 has the same place
    address.sin6_family = static_cast<sa_family_t>(family);
    address.sin6_addr = in6addr_loopback;
    if (family == AF_INET)
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(m_listener, reinterpret_cast<const sockaddr*>(&address), size);
    ::getsockname(m_listener, reinterpret_cast<sockaddr*>(&address), &size);
    m_port = ntohs(address.sin6_port);
    ::listen(m_listener, 16);
    m_thread = std::thread([this] { accept_all(); });
  }
  FakeRpcServer(const FakeRpcServer&) = delete;
  FakeRpcServer& operator=(const FakeRpcServer&) = delete;
  ~FakeRpcServer() {
    m_stop = true;
    ::shutdown(m_listener, SHUT_RDWR);
    m_thread.join();
    ::close(m_listener);
  }
  [[nodiscard]] std::uint16_t port() const { return m_port; }
  [[nodiscard]] bool is_ipv6() const { return m_family == AF_INET6; }
  /// What a test writes or reads that the threads of its servers read or write, while none of them answers.
  template <class Function> static auto between_answers(const Function& function) {
    const std::lock_guard lock(s_answering);
    return function();
  }
  /// Between what a test writes and what the threads read, and the other way round.
  static void settle() {
    between_answers([] {});
  }

 private:
  void accept_all() {
    std::vector<std::thread> connections;
    while (!m_stop) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      const int fd = ::accept4(m_listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
      if (fd < 0)
        break;
      connections.emplace_back([this, fd, port = ntohs(peer.sin_port)] {
        while (serve_one(fd, port))
          ;
        ::close(fd);
      });
    }
    for (std::thread& connection : connections)
      connection.join();
  }

  std::optional<std::string> read_exactly(int fd, std::size_t size) const {
    std::string bytes;
    while (bytes.size() < size) {
      pollfd readable{fd, POLLIN, 0};
      while (::poll(&readable, 1, 20) == 0)
        if (m_stop)
          return std::nullopt;
      std::string part(size - bytes.size(), '\0');
      const ssize_t count = ::read(fd, part.data(), part.size());
      if (count <= 0)
        return std::nullopt;
      bytes.append(part, 0, static_cast<std::size_t>(count));
    }
    return bytes;
  }

  static std::string framed(const Xdr& record) {
    return Xdr().word(0x80000000U | static_cast<std::uint32_t>(record.bytes().size())).bytes() + record.bytes();
  }

  static std::uint32_t word_at(const std::string& bytes, std::size_t index) {
    std::uint32_t value = 0;
    bytes.copy(reinterpret_cast<char*>(&value), 4, index * 4);
    return ntohl(value);
  }

  static bool send_all(int fd, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0)
        return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  [[nodiscard]] bool drip(int fd, const std::string& bytes) const {
    for (const char byte : bytes) {
      pollfd hung_up{fd, POLLIN, 0};
      if (m_stop || ::poll(&hung_up, 1, 20) != 0 || !send_all(fd, std::string(1, byte)))
        return false;
    }
    return true;
  }

  bool serve_one(int fd, std::uint16_t peer_port) const {
    const auto mark = read_exactly(fd, 4);
    const auto message = mark ? read_exactly(fd, word_at(*mark, 0) & 0x7FFFFFFF) : std::nullopt;
    if (!message)
      return false;
    // xid, CALL, rpc version, program, version, procedure, credential (flavor, length, body), verifier (the same)
    RpcCall call{word_at(*message, 0), word_at(*message, 3), word_at(*message, 4), word_at(*message, 5), {}, peer_port};
    const std::size_t credential = word_at(*message, 7);
    call.argument = message->substr(4 * 8 + credential + 8);
    const RpcAnswer answer = [&] {
      const std::lock_guard lock(s_answering);
      return m_serve(call);
    }();
    if (answer.kind == RpcAnswer::Kind::hang_up)
      return false;
    if (answer.kind == RpcAnswer::Kind::silence)
      return true;
    if (answer.kind == RpcAnswer::Kind::bytes) {
      send_all(fd, answer.result);
      return false;
    }
    Xdr reply;
    reply.word(call.xid);
    if (answer.kind == RpcAnswer::Kind::reply)
      return send_all(fd, framed(reply.raw(answer.result)));
    reply.word(1).word(0).word(0).word(0); // REPLY, accepted, AUTH_NONE verifier of no length
    if (answer.kind == RpcAnswer::Kind::no_program)
      reply.word(1);
    else if (answer.kind == RpcAnswer::Kind::version_mismatch)
      reply.word(2).word(4).word(4);
    else
      reply.word(0).raw(answer.result);
    if (answer.kind == RpcAnswer::Kind::drip)
      return drip(fd, framed(reply));
    return send_all(fd, framed(reply));
  }

  static inline std::mutex s_answering;
  Serve m_serve;
  int m_family;
  int m_listener = -1;
  std::uint16_t m_port = 0;
  std::atomic<bool> m_stop = false;
  std::thread m_thread;
};

} // namespace sharefs::test

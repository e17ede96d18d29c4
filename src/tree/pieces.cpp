#include "tree/pieces.hpp"

#include "base/text.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <poll.h>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

namespace sharefs::tree {

namespace {

/// The pieces of the original that are read at the same time: with 10 Gbit/s and a round trip of 10 ms, 12 MB are in
/// transit. NFS reads a large piece by many parallel requests, which costs less than the same number of threads.
constexpr std::uint64_t k_piece = 4U << 20U;
constexpr std::size_t k_pieces = 4;

/// Reads the output of a program.
class StreamReader : public Pieces {
 public:
  StreamReader(sys::StreamedProcess process, std::uint64_t size, std::uint64_t least, std::chrono::milliseconds timeout)
      : m_process(std::move(process)), m_left(size), m_least(least), m_timeout(timeout) {}

  int next(const Take& take) override {
    pollfd ready{m_process.out().get(), POLLIN, 0};
    // Only whole blocks are passed on, except at the end, because the part is continued at a block boundary.
    while (m_size < k_alignment && m_size < m_left) {
      const auto begin = sys::Clock::now();
      const int count = ::poll(&ready, 1, sys::poll_time(begin + m_timeout - m_waited));
      m_waited += sys::Clock::now() - begin;
      if (count < 0 && errno == EINTR)
        continue;
      m_is_silent = count == 0;
      const auto length = count <= 0 ? 0 : ::read(ready.fd, m_bytes.data() + m_size, m_bytes.size() - m_size);
      if (length < 0 && errno == EINTR)
        continue;
      if (length <= 0)
        return ENODATA;
      m_size += static_cast<std::size_t>(length);
      m_fresh += static_cast<std::size_t>(length);
      if (m_fresh >= m_least) { // a block now and then is no progress
        m_fresh = 0;
        m_waited = {};
      }
    }
    if (m_size > m_left)
      return EFBIG;
    const auto whole = m_size == m_left ? m_size : m_size - m_size % k_alignment;
    const int error = take(std::string_view(m_bytes.data(), whole));
    ::memmove(m_bytes.data(), m_bytes.data() + whole, m_size - whole);
    m_size -= whole;
    m_left -= whole;
    return error;
  }
  [[nodiscard]] std::string error_text() override {
    constexpr std::size_t k_longest = 300;
    const auto text = m_process.error_text().substr(0, k_longest);
    return text.empty() && m_is_silent
               ? fmt::format("has sent nothing, or next to nothing, for {}", format_duration(m_timeout / 1us))
               : text;
  }

 private:
  sys::StreamedProcess m_process;
  std::vector<char> m_bytes = std::vector<char>(k_piece);
  std::size_t m_size = 0;
  std::uint64_t m_left, m_least;
  std::chrono::milliseconds m_timeout;
  /// The bytes since m_least of them were complete, and the time that was spent on waiting for them. The time for which
  /// this host's disk keeps the program waiting is not its fault.
  std::uint64_t m_fresh = 0;
  sys::Clock::duration m_waited{};
  bool m_is_silent = false;
};

/// Reads the original by several threads. Each fills one piece ahead, and next() takes the pieces in their order.
class PieceReader : public Pieces {
 public:
  PieceReader(int file, std::uint64_t begin, std::uint64_t end) : m_file(file), m_at(begin), m_end(end) {
    for (auto& buffer : m_buffers) {
      buffer.reset(static_cast<char*>(std::aligned_alloc(k_alignment, k_piece)));
      read_ahead(buffer.get());
    }
  }

  int next(const Take& take) override {
    auto piece = std::move(m_ahead.front());
    m_ahead.pop_front();
    if (const int error = piece.error_number.get(); error != 0)
      return error;
    const int error = take(std::string_view(piece.bytes, piece.size));
    read_ahead(piece.bytes);
    return error;
  }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); } // NOLINT: it was allocated by aligned_alloc
  };
  struct Piece {
    char* bytes;
    std::size_t size;
    std::future<int> error_number; ///< of reading it
  };

  /// Begins to read the next piece of the file, if there is one, into a buffer that is free. If the system gives no
  /// further thread, next() reads the piece itself.
  void read_ahead(char* bytes) {
    if (m_at >= m_end)
      return;
    const auto at = m_at;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(k_piece, m_end - at));
    m_ahead.push_back({bytes, size, std::async([this, bytes, at, size] { return read(bytes, at, size); })});
    m_at += size;
  }

  /// Reads one piece. Returns 0 or errno.
  [[nodiscard]] int read(char* bytes, std::uint64_t at, std::size_t size) const {
    if (bytes == nullptr)
      return ENOMEM;
    for (std::size_t done = 0; done < size;) {
      // A whole piece is requested also at the end of the file, because O_DIRECT requires whole blocks.
      const ssize_t count = ::pread(m_file, bytes + done, k_piece - done, static_cast<off_t>(at + done));
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0 && errno == EINVAL && drop_direct())
        continue;
      if (count <= 0)
        return count == 0 ? ENODATA : errno;
      done += static_cast<std::size_t>(count);
    }
    return 0;
  }

  /// Clears O_DIRECT, because the bytes read so far may end within a block. False: it was not set.
  [[nodiscard]] bool drop_direct() const {
    const int flags = ::fcntl(m_file, F_GETFL);
    return (flags & O_DIRECT) != 0 && ::fcntl(m_file, F_SETFL, flags & ~O_DIRECT) == 0;
  }

  int m_file;
  std::uint64_t m_at, m_end; ///< the offset of the next piece, and the end of the file
  std::array<std::unique_ptr<char, Free>, k_pieces> m_buffers;
  std::deque<Piece> m_ahead; ///< after the buffers, because its destructor waits for the threads that fill them
};

} // namespace

std::unique_ptr<Pieces> read_program(sys::StreamedProcess process, std::uint64_t size, std::uint64_t least,
                                     std::chrono::milliseconds timeout) {
  return std::make_unique<StreamReader>(std::move(process), size, least, timeout);
}

std::unique_ptr<Pieces> read_original(int file, std::uint64_t begin, std::uint64_t end) {
  return std::make_unique<PieceReader>(file, begin, end);
}

} // namespace sharefs::tree

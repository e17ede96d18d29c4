#include "tree/pieces.hpp"

#include "base/text.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <poll.h>
#include <thread>
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
  StreamReader(sys::StreamedProcess process, std::uint64_t size, std::chrono::milliseconds timeout)
      : m_process(std::move(process)), m_left(size), m_timeout(timeout) {}

  int next(const Take& take) override {
    pollfd ready{m_process.out().get(), POLLIN, 0};
    const auto end = sys::deadline_in(m_timeout); // for a whole block: a byte now and then is no progress
    // Only whole blocks are passed on, except at the end, because the part is continued at a block boundary.
    while (m_size < k_alignment && m_size < m_left) {
      const int count = ::poll(&ready, 1, sys::poll_time(end));
      if (count < 0 && errno == EINTR)
        continue;
      m_is_silent = count == 0;
      const auto length = count <= 0 ? 0 : ::read(ready.fd, m_bytes.data() + m_size, m_bytes.size() - m_size);
      if (length < 0 && errno == EINTR)
        continue;
      if (length <= 0)
        return ENODATA;
      m_size += static_cast<std::size_t>(length);
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
  std::uint64_t m_left;
  std::chrono::milliseconds m_timeout;
  bool m_is_silent = false;
};

/// Reads the original by several threads. Each fills its own slot, and next() takes the slots in turn.
class PieceReader : public Pieces {
 public:
  PieceReader(int file, std::uint64_t begin, std::uint64_t end) : m_file(file), m_end(end) {
    const auto count = std::min<std::uint64_t>(k_pieces, (end - begin + k_piece - 1) / k_piece);
    for (std::uint64_t i = 0; i < count; ++i)
      m_slots.emplace_back().offset = begin + i * k_piece;
    try {
      for (auto& slot : m_slots)
        slot.thread = std::thread([this, &slot] { read_all_of(slot); });
    } catch (...) { // no more threads: the destructor is not called
      end_threads();
      throw;
    }
  }
  ~PieceReader() override { end_threads(); }

  int next(const Take& take) override {
    auto& slot = m_slots[m_next++ % m_slots.size()];
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return slot.full; });
    if (slot.error_number != 0)
      return slot.error_number;
    lock.unlock();
    const int error = take(std::string_view(slot.bytes.get(), slot.size));
    lock.lock();
    slot.full = false;
    lock.unlock();
    m_changed.notify_all();
    return error;
  }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); } // NOLINT: it was allocated by aligned_alloc
  };
  struct Slot {
    std::uint64_t offset = 0; ///< of the next piece
    std::size_t size = 0;
    std::unique_ptr<char, Free> bytes{static_cast<char*>(std::aligned_alloc(k_alignment, k_piece))};
    int error_number = 0;
    bool full = false;
    std::thread thread;
  };

  void end_threads() {
    {
      const std::lock_guard lock(m_mutex);
      m_stopped = true;
    }
    m_changed.notify_all();
    for (auto& slot : m_slots)
      if (slot.thread.joinable())
        slot.thread.join();
  }

  void read_all_of(Slot& slot) {
    for (; slot.offset < m_end; slot.offset += stride()) {
      slot.size = static_cast<std::size_t>(std::min<std::uint64_t>(k_piece, m_end - slot.offset));
      const int error = read(slot);
      std::unique_lock lock(m_mutex);
      slot.error_number = error;
      slot.full = true;
      m_changed.notify_all();
      m_changed.wait(lock, [&] { return m_stopped || !slot.full; });
      if (m_stopped || error != 0)
        return;
    }
  }

  [[nodiscard]] std::uint64_t stride() const { return m_slots.size() * k_piece; }

  /// Reads one piece. Returns 0 or errno.
  int read(Slot& slot) {
    if (!slot.bytes)
      return ENOMEM;
    for (std::size_t done = 0; done < slot.size;) {
      // A whole piece is requested also at the end of the file, because O_DIRECT requires whole blocks.
      const ssize_t count =
          ::pread(m_file, slot.bytes.get() + done, k_piece - done, static_cast<off_t>(slot.offset + done));
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
  bool drop_direct() {
    const int flags = ::fcntl(m_file, F_GETFL);
    return (flags & O_DIRECT) != 0 && ::fcntl(m_file, F_SETFL, flags & ~O_DIRECT) == 0;
  }

  int m_file;
  std::uint64_t m_end;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<Slot> m_slots; ///< a deque, because its elements keep their addresses
  std::size_t m_next = 0;
  bool m_stopped = false;
};

} // namespace

std::unique_ptr<Pieces> read_program(sys::StreamedProcess process, std::uint64_t size,
                                     std::chrono::milliseconds timeout) {
  return std::make_unique<StreamReader>(std::move(process), size, timeout);
}

std::unique_ptr<Pieces> read_original(int file, std::uint64_t begin, std::uint64_t end) {
  return std::make_unique<PieceReader>(file, begin, end);
}

} // namespace sharefs::tree

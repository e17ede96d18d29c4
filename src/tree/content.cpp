#include "tree/copier.hpp"

#include <algorithm>
#include <cerrno>
#include <xxhash.h>

namespace sharefs::tree {

namespace {

constexpr std::uint64_t k_block = 1U << 20U;

bool is_sparse(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_blocks) * 512U < static_cast<std::uint64_t>(status.st_size);
}

class ContentReader {
 public:
  ContentReader(Job& job, int from, int to) : m_job(job), m_from(from), m_to(to), m_writer(to) {
    XXH3_128bits_reset(m_state.get());
  }

  Hashed read(const struct stat& status) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const bool sparse = is_sparse(status);
    std::uint64_t at = 0;
    while (at < size && m_error == 0 && !m_short) {
      const auto [data, end] = sparse ? next_data(at, size) : std::pair(at, size);
      hash_zeros(data - at);
      at = read_extent(data, end);
    }
    if (m_error == 0 && sparse && m_to >= 0 && ::ftruncate(m_to, static_cast<off_t>(at)) != 0)
      return tl::make_unexpected(ContentError{errno, true});
    if (m_error != 0)
      return tl::make_unexpected(ContentError{m_error, m_of_target});
    const auto hash = XXH3_128bits_digest(m_state.get());
    return Hash{hash.high64, hash.low64};
  }

 private:
  /// Returns begin and end of the next data from `at` on; both are `size` if there is only a hole.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> next_data(std::uint64_t at, std::uint64_t size) const {
    const off_t data = ::lseek(m_from, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0)
      return errno == ENXIO ? std::pair(size, size) : std::pair(at, size);
    const off_t hole = ::lseek(m_from, data, SEEK_HOLE);
    const auto begin = std::min(static_cast<std::uint64_t>(data), size);
    return {begin, hole < 0 ? size : std::clamp(static_cast<std::uint64_t>(hole), begin, size)};
  }

  void hash_zeros(std::uint64_t count) {
    static const std::vector<char> none(k_block);
    for (; count > 0; count -= std::min(count, k_block)) {
      XXH3_128bits_update(m_state.get(), none.data(), std::min(count, k_block));
      m_job.counters.add(k_steps);
    }
  }

  /// Reads the data up to `end` and copies it. Returns the offset after the last byte that was read.
  std::uint64_t read_extent(std::uint64_t at, std::uint64_t end) {
    const auto bytes = buffer();
    while (at < end) {
      const ssize_t count =
          ::pread(m_from, bytes.data(), std::min<std::uint64_t>(end - at, bytes.size()), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0) {
        m_short = count == 0;
        m_error = count == 0 ? 0 : errno;
        break;
      }
      const auto read = static_cast<std::size_t>(count);
      XXH3_128bits_update(m_state.get(), bytes.data(), read);
      m_job.counters.add(k_steps);
      if (m_to >= 0 && !write({bytes.data(), read}, at))
        break;
      at += read;
    }
    return at;
  }

  bool write(std::string_view data, std::uint64_t at) {
    m_job.wait_for(data.size());
    m_job.counters.add(k_bytes, data.size());
    m_error = m_writer.write(data, at);
    m_of_target = m_error != 0;
    return m_error == 0;
  }

  Job& m_job;
  int m_from, m_to; ///< `m_to` is -1 if the file is only read
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> m_state{XXH3_createState()};
  FlushingWriter m_writer;
  int m_error = 0;
  bool m_of_target = false;
  bool m_short = false;
};

} // namespace

Hashed copy_content(Job& job, int from, const struct stat& status, int to) {
  return ContentReader(job, from, to).read(status);
}

Hashed hash_content(Job& job, int file, const struct stat& status, bool from_disk) {
  if (from_disk) // drops the clean pages from the cache; dirty pages stay
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  return ContentReader(job, file, -1).read(status);
}

} // namespace sharefs::tree

#include "tree/copier.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <xxhash.h>

namespace sharefs::tree {

namespace {

constexpr std::uint64_t k_block = 1U << 20U;

bool is_sparse(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_blocks) * 512U < static_cast<std::uint64_t>(status.st_size);
}

/// Returns begin and end of the next data of a sparse file from `at` on; both are `size` if there is only a hole.
std::pair<std::uint64_t, std::uint64_t> next_data(int file, std::uint64_t at, std::uint64_t size) {
  const off_t data = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0)
    return errno == ENXIO ? std::pair(size, size) : std::pair(at, size);
  const off_t hole = ::lseek(file, data, SEEK_HOLE);
  const auto begin = std::min(static_cast<std::uint64_t>(data), size);
  return {begin, hole < 0 ? size : std::clamp(static_cast<std::uint64_t>(hole), begin, size)};
}

void hash_zeros(Job& job, XXH3_state_t* state, std::uint64_t count) {
  static const std::vector<char> none(k_block);
  for (; count > 0; count -= std::min(count, k_block)) {
    XXH3_128bits_update(state, none.data(), std::min(count, k_block));
    job.counters.add(k_steps);
  }
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

} // namespace

Hashed hash_content(Job& job, int file, const struct stat& status, int copy) {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  FlushingWriter writer(copy);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const bool sparse = is_sparse(status);
  std::uint64_t at = 0;
  for (std::uint64_t end = 0; at == end && at < size;) { // a file that is shorter by now ends before `end`
    const auto begin = at;
    std::tie(at, end) = sparse ? next_data(file, begin, size) : std::pair(begin, size);
    hash_zeros(job, state.get(), at - begin);
    int write_error = 0;
    const int error = read_file(file, at, end, [&](std::string_view piece) {
      XXH3_128bits_update(state.get(), piece.data(), piece.size());
      job.counters.add(k_steps);
      if (copy >= 0) {
        job.wait_for(piece.size());
        job.counters.add(k_bytes, piece.size());
        write_error = writer.write(piece, at);
      }
      at += write_error == 0 ? piece.size() : 0;
      return write_error == 0;
    });
    if (error != 0 || write_error != 0)
      return tl::make_unexpected(ContentError{error != 0 ? error : write_error, error == 0});
  }
  if (sparse && copy >= 0 && ::ftruncate(copy, static_cast<off_t>(at)) != 0)
    return tl::make_unexpected(ContentError{errno, true});
  const auto hash = XXH3_128bits_digest(state.get());
  return Hash{hash.high64, hash.low64};
}

} // namespace sharefs::tree

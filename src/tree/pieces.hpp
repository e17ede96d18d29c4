#pragma once
// Private to fetch(): what comes, in order, from an offset on, from a program or from the original.
#include "sys/programs/process.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace sharefs::tree {

/// What O_DIRECT wants of addresses, offsets and lengths.
inline constexpr std::size_t k_alignment = 4096;

/// What comes, in order, from an offset on.
class Pieces {
 public:
  using Take = std::function<int(std::string_view piece)>;
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;
  /// What a program has said when there was no more of it.
  [[nodiscard]] virtual std::string error_text() { return {}; }
  /// The next piece is given to `take`, which says 0 or errno, and so does this. There is no more: ENODATA.
  virtual int next(const Take& take) = 0;
};

/// What a program prints, `size` bytes: it is waited for as long as Upstream allows (k_upstream_patience).
std::unique_ptr<Pieces> read_program(sys::StreamedProcess process, std::uint64_t size);
/// The rest of an open file, which several threads read, each its own pieces. Past the cache, where the file system can
/// do that (O_DIRECT): nothing of it is read twice, and the copy is what is cached.
std::unique_ptr<Pieces> read_original(int file, std::uint64_t begin, std::uint64_t end);

} // namespace sharefs::tree

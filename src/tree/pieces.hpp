#pragma once
// Private to fetch(): reads the rest of a file in order, from a program or from the original.
#include "sys/programs/process.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

namespace sharefs::tree {

/// The alignment that O_DIRECT requires for addresses, offsets and lengths.
inline constexpr std::size_t k_alignment = 4096;

/// The pieces of a file, in order, from an offset on.
class Pieces {
 public:
  using Take = std::function<int(std::string_view piece)>;
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;
  /// Returns the program's error message after its output has ended early.
  [[nodiscard]] virtual std::string error_text() { return {}; }
  /// Passes the next piece to `take` and returns its result, 0 or errno; ENODATA if there are no more bytes.
  virtual int next(const Take& take) = 0;
};

/// Reads `size` bytes of a program's output. The output ends (ENODATA) if it was waited for during `timeout`, and not
/// even `least` bytes, or the rest, have come.
std::unique_ptr<Pieces> read_program(sys::StreamedProcess process, std::uint64_t size, std::uint64_t least,
                                     std::chrono::milliseconds timeout);
/// Reads the rest of an open file by several threads, a few pieces ahead. With O_DIRECT, if the file system supports
/// it, the cache is bypassed: the file is read only once, and the cache is better used for the copy.
std::unique_ptr<Pieces> read_original(int file, std::uint64_t begin, std::uint64_t end);

} // namespace sharefs::tree

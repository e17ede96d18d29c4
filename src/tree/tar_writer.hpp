#pragma once
// Private to tree: writes a POSIX.1-2001 tar (pax) to a pipe. It contains only directories, files and symbolic links.
#include "tree/reader.hpp"

namespace sharefs::tree {

class TarWriter {
 public:
  /// Writes to `pipe`. All entries have uid and gid 0, because mksquashfs gets the owner by its options.
  explicit TarWriter(int pipe) : m_pipe(pipe) {}

  /// Writes the header of `entry`. For a file, write() must follow with exactly as many bytes as its size. Returns 0 or
  /// errno, like all functions here.
  [[nodiscard]] int add(const Entry& entry);
  [[nodiscard]] int write(std::string_view bytes);
  [[nodiscard]] int end();

 private:
  int flush();
  int pad();

  int m_pipe;
  std::string m_waiting; ///< bytes that are not written yet
  std::uint64_t m_written = 0;
};

} // namespace sharefs::tree

#pragma once
// Private to tree: POSIX.1-2001 tar (pax), written to a pipe. Nothing but directories, files and symbolic links.
#include "tree/reader.hpp"

namespace sharefs::tree {

class TarWriter {
 public:
  /// Writes to `pipe`. What is written belongs to nobody: mksquashfs is told whose it is.
  explicit TarWriter(int pipe) : m_pipe(pipe) {}

  /// The header of what `entry` is. A file's bytes come next, by content(), exactly as many as its size says.
  /// 0 or errno, as all functions here.
  [[nodiscard]] int add(const Entry& entry);
  [[nodiscard]] int content(std::string_view bytes);
  [[nodiscard]] int end();

 private:
  int write(std::string_view bytes);
  int flush();
  int pad();

  int m_pipe;
  std::string m_waiting; ///< to be written with what comes next
  std::uint64_t m_written = 0;
};

} // namespace sharefs::tree

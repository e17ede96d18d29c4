#pragma once
// Opening paths inside of a root directory: what the reading and the writing half of Files share.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <string>
#include <string_view>

namespace sharefs::sys {

/// No link leads out of it (openat2(2), RESOLVE_IN_ROOT).
class RootDirectory {
 public:
  explicit RootDirectory(const std::string& root);
  /// Empty, and errno, on failure. `flags` as for open(2); O_CLOEXEC is added.
  [[nodiscard]] Fd open(const std::string& path, int flags) const;

 private:
  bool m_live;
  Fd m_root;
};

/// An open directory (O_PATH) and a name in it that may not exist.
struct Location {
  Fd directory;
  std::string name;
};

/// Where `path` lies; with `follow` where the link at its end points to. `not_found` without the parent directory.
Result<Location> locate(const RootDirectory& root, const std::string& path, bool follow);

/// O_NONBLOCK: opening a fifo must not wait for its writer.
inline constexpr int k_read_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
/// The content of an open regular file; anything else, or more than `limit` bytes, is `failed`. `path` is for messages.
Result<std::string> read_regular(int fd, const std::string& path, std::size_t limit);

/// fsync of a directory, so that a rename or unlink in it survives a power cut.
Result<void> sync_directory(const Location& location, const std::string& path);

} // namespace sharefs::sys

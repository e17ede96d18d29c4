#pragma once
// A file descriptor that is closed by its destructor. Every descriptor of sharefs is opened with O_CLOEXEC.
#include <array>
#include <climits>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace sharefs::sys {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : m_fd(fd) {}
  Fd(Fd&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other)
      reset(std::exchange(other.m_fd, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return m_fd; }
  [[nodiscard]] explicit operator bool() const { return m_fd >= 0; }
  void reset(int fd = -1) {
    if (m_fd >= 0)
      ::close(m_fd);
    m_fd = fd;
  }
  [[nodiscard]] int release() { return std::exchange(m_fd, -1); }

 private:
  int m_fd = -1;
};

/// Returns a path that leads to an open O_PATH descriptor, for system calls that take only a path. It names the thread,
/// because a thread may have its own descriptor table.
inline std::string by_descriptor(int fd) {
  return "/proc/thread-self/fd/" + std::to_string(fd);
}

/// Returns the text of a symbolic link; nullopt with errno. `name`: "" for the link that the descriptor itself is.
inline std::optional<std::string> read_link(int directory, const std::string& name) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(directory, name.c_str(), text.data(), text.size());
  return size < 0 ? std::nullopt : std::optional(std::string(text.data(), static_cast<std::size_t>(size)));
}

/// Opens /dev/null on each closed descriptor of 0, 1 and 2. The next file that is opened would get such a number
/// otherwise, and messages would be written into the host's lock file or the journal. As on a closed descriptor,
/// reading ends at once and writing fails; a command that replaces this process finds the descriptor closed. False:
/// /dev/null cannot be opened.
inline bool occupy_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
      return false;
  return true;
}

struct Pipe {
  Fd read, write;
  /// Opens both ends. False, with errno, if no descriptors are left.
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

} // namespace sharefs::sys

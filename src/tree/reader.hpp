#pragma once
// A whole directory tree as it is, read by several threads: names and attributes, then the content of files. In a child
// only (watched), because any path may lie on a dead mount. No link is followed and nothing that is mounted in
// the tree is entered.
#include "base/result.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/fd.hpp"
#include "tree/here.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace sharefs::tree {

struct Entry {
  std::string path;       ///< below the tree
  std::uint32_t mode = 0; ///< with the kind of file: S_ISREG(mode)
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t size = 0, links = 0;
  std::uint64_t device = 0, inode = 0;
  std::int64_t mtime = 0, mtime_ns = 0; ///< seconds, and nanoseconds
  std::int64_t changed = 0;             ///< ctime in nanoseconds
  std::string target = {};              ///< of a symbolic link
  int error_number = 0;                 ///< why a directory could not be listed, or an entry not be seen
};

sys::FileIdentity identity_of(const Entry& entry);

/// sharefs::in_parallel by as many threads as the file system of `directory` wants: a file on a server takes the time
/// of a few round trips, and one on a disk the time of a processor.
void in_parallel(int directory, std::size_t count, const std::function<void(std::size_t)>& work);

class Reader {
 public:
  /// `path` as seen from inside the root; a link at its end is followed. `not_found`, or not a directory.
  static Result<Reader> open(const sys::Files& files, const std::string& path, const sys::ProgressCounters& counters);
  static Result<Reader> open(const Place& place, const sys::ProgressCounters& counters);

  [[nodiscard]] const struct stat& status() const { return m_status; }
  /// By path; the tree itself is not among them. `failed`: more than k_most_entries, or than k_most_text bytes of their
  /// names and links. Hard links cost who makes them next to nothing.
  static constexpr std::size_t k_most_entries = 5'000'000, k_most_text = 512U << 20U;
  [[nodiscard]] Result<std::vector<Entry>> list(std::size_t most = k_most_entries) const;
  /// What was written to some minutes ago may be in the hands of another client of NFS: while that has a delegation to
  /// write, the server makes up times and the size (Linux 6.14). Each is opened, which calls the delegation back, and
  /// its status taken again.
  void call_back(std::vector<Entry>& entries) const;
  /// The modes of these, and of the tree itself, as they are without the ACLs that a copy has not (sys::mode_by_acl()).
  void narrow_modes(std::vector<Entry>& entries);
  /// The content of a regular file, piece by piece; what the visitor returns ends it. 0 or errno; ESTALE: it changed
  /// meanwhile.
  [[nodiscard]] int read(const std::string& path, const std::function<bool(std::string_view piece)>& visit) const;
  /// The first bytes; fewer where there are no more. 0 or errno.
  [[nodiscard]] int read(const std::string& path, std::size_t limit, std::string& into) const;
  void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) const {
    tree::in_parallel(m_directory.get(), count, work);
  }

 private:
  Reader(sys::Fd directory, const struct stat& status, const sys::ProgressCounters& counters)
      : m_directory(std::move(directory)), m_status(status), m_counters(counters) {}
  int read(const std::string& path, std::size_t at_once,
           const std::function<bool(std::string_view piece)>& visit) const;

  sys::Fd m_directory;
  struct stat m_status;
  sys::ProgressCounters m_counters;
};

} // namespace sharefs::tree

#pragma once
// Reads a whole directory tree by several threads: names and attributes, then the content of files. Must be called in a
// child (watched()), because any path may lie on a dead mount. No link is followed, and no mount in the tree is
// entered.
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
  std::string path;       ///< relative to the tree
  std::uint32_t mode = 0; ///< including the file type: S_ISREG(mode)
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t size = 0, links = 0;
  std::uint64_t device = 0, inode = 0;
  std::int64_t mtime = 0, mtime_ns = 0; ///< seconds, and nanoseconds within the second
  std::int64_t changed = 0;             ///< ctime in nanoseconds
  std::string target = {};              ///< target of a symbolic link
  int error_number = 0;                 ///< why a directory could not be listed, or the status of an entry not be read
  mode_t withheld = 0;                  ///< after narrow_modes(): see sys::mode_by_acl()
};

sys::FileIdentity identity_of(const Entry& entry);

/// Calls sharefs::in_parallel with many threads, because a file on a server takes a few round trips.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

class Reader {
 public:
  /// Opens the tree at `path`, as seen from inside the root; a link at its end is followed. Error `not_found`: there is
  /// no directory.
  static Result<Reader> open(const sys::Files& files, const std::string& path, const sys::ProgressCounters& counters);
  static Result<Reader> open(const Place& place, const sys::ProgressCounters& counters);

  [[nodiscard]] const struct stat& status() const { return m_status; }
  /// Returns the entries sorted by path, without the tree itself. Error `failed`: there are more than k_most_entries,
  /// or more than k_most_text bytes of names and links. There must be a limit, because anybody can make huge numbers of
  /// hard links at almost no cost.
  static constexpr std::size_t k_most_entries = 5'000'000, k_most_text = 512U << 20U;
  [[nodiscard]] Result<std::vector<Entry>> list(std::size_t most = k_most_entries) const;
  /// Reads the status of files again that were written during the last minutes. Another NFS client may have a write
  /// delegation of them, and while it has, the server makes up their times and size (Linux 6.14). Opening the file
  /// recalls the delegation.
  void recall_delegations(std::vector<Entry>& entries) const;
  /// Limits the modes of the entries, and of the tree itself, to the rights that remain in a copy without ACLs
  /// (sys::mode_by_acl()).
  void narrow_modes(std::vector<Entry>& entries);
  /// Returns Entry::withheld of the tree itself.
  [[nodiscard]] mode_t withheld() const { return m_withheld; }
  /// Reads the content of a regular file, piece by piece, until the visitor returns false. Returns 0 or errno; ESTALE:
  /// the file has changed meanwhile. With `listed` it must still be the file that is in the list, since whoever may
  /// write in its directory could give its name to a private file.
  [[nodiscard]] int read(const std::string& path, const std::function<bool(std::string_view piece)>& visit,
                         const Entry* listed = nullptr) const;
  /// Reads the first `limit` bytes, or fewer if the file is shorter. Returns 0 or errno.
  [[nodiscard]] int read(const std::string& path, std::size_t limit, std::string& into,
                         const Entry* listed = nullptr) const;

 private:
  Reader(sys::Fd directory, const struct stat& status, const sys::ProgressCounters& counters)
      : m_directory(std::move(directory)), m_status(status), m_counters(counters) {}
  int read(const std::string& path, std::size_t at_once, const std::function<bool(std::string_view piece)>& visit,
           const Entry* listed) const;

  sys::Fd m_directory;
  struct stat m_status;
  mode_t m_withheld = 0;
  sys::ProgressCounters m_counters;
};

} // namespace sharefs::tree

#pragma once
// Private to tree: the common parts of its functions, which run in a child.
#include "sys/fs/walk.hpp"
#include "sys/process/progress_counters.hpp"
#include "tree/here.hpp"
#include "tree/workers.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

namespace sharefs::tree {

/// The number of threads: many, because on a network each waits for round trips, and on a disk for its file to be
/// synced. (A session of NFSv4.1 has 64 slots in Linux.)
inline constexpr unsigned k_threads = 32;

/// Writes a file from its beginning to its end. Each time after 16 MiB writing to the disk is started, so that the
/// fsync at the end does not take minutes without progress.
class FlushingWriter {
 public:
  /// `begin`: the end of what is on the disk already.
  explicit FlushingWriter(int file, std::uint64_t begin = 0) : m_file(file), m_flushed(begin) {}
  /// Writes all of `data`. Returns 0 or errno.
  int write(std::string_view data, std::uint64_t at);

 private:
  int m_file;
  std::uint64_t m_flushed;
};

/// Returns this thread's read buffer of 1 MiB. Most files are small, but memory that is not written to costs nothing.
std::span<char> buffer();

/// Returns the error of a failed system call at `path`; EXDEV: something is mounted there.
Error error_in_tree(int error_number, const std::string& path);

/// One piece of work on a tree in one process, with its threads and its errors.
class Job {
 public:
  Job(const Options& job_options, const sys::ProgressCounters& job_counters)
      : options(job_options), counters(job_counters) {}

  /// Records a failed system call at `path`. An error that every file would get (a full disk) ends the work.
  void failed(int error_number, const std::string& path);
  void failed(Error error);
  /// Records an error like failed(), and ends the work.
  void stop(Error error);
  /// Returns the first failure, with the number of failures and some names.
  [[nodiscard]] Result<void> result() const;

  /// Runs the tasks of the workers.
  void work() { workers.run(options.threads > 0 ? options.threads : k_threads); }

  /// Waits until the limit Options::bytes_per_second allows `bytes` more.
  void wait_for(std::uint64_t bytes);

  const Options& options;
  const sys::ProgressCounters& counters;
  Workers workers;

 private:
  mutable std::mutex m_mutex;
  std::size_t m_failures = 0;
  Error m_first;
  std::vector<std::string> m_named;
  sys::Deadline m_next_write{}; ///< the time from which the limit allows more
};

using sys::open_below;

/// Opens a directory for reading without changing its access time, if this process may use O_NOATIME.
sys::Fd open_without_atime(int parent, const char* name);

struct Name {
  std::string name;
  unsigned char type = 0; ///< DT_DIR, ...; never DT_UNKNOWN
};
/// Reads the names in an open directory. Returns 0 or errno.
int read_names(int directory, std::vector<Name>& into);

/// A directory during a walk. Its descriptors are open until all work below it is done.
struct Node {
  std::shared_ptr<Node> parent; ///< null for the tree itself
  std::string path;             ///< relative to the tree
  std::string name;
  sys::Fd fd;
  std::atomic<std::size_t> open{1}; ///< the number of unfinished parts: its subdirectories and its own files
  int depth = 0;
  [[nodiscard]] std::string below(const std::string& what) const { return path.empty() ? what : path + "/" + what; }
};
inline constexpr int k_deepest = 1000; ///< the limit of nested directories, because each takes descriptors

/// Walks to `place`, whether or not something exists there.
Result<sys::Walked> walk_to(const Place& place);
/// Opens the file at `place` for reading; a symbolic link is not followed.
Result<sys::Fd> open_file(const Place& place);
/// Reads an open file from `at` to `end` or to its end, until `take` returns false. Returns 0 or errno.
int read_file(int file, std::uint64_t at, std::uint64_t end, const std::function<bool(std::string_view piece)>& take);
/// Returns checksum and size of an open file. `counted`: the counter for the bytes. `magic`: the bytes with which the
/// file must begin; any other file is not read, and the result has 0 bytes.
Result<FileContent> hash_file(int file, const std::string& path, const sys::ProgressCounters& counters, Counted counted,
                              std::string_view magic = {});
/// Becomes Options::reader, if it is given, before the original is opened. The capabilities that are needed to set
/// owner and mode of the copy are kept.
Result<void> become_reader(const Options& options);

} // namespace sharefs::tree

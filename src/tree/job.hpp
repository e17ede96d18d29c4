#pragma once
// Private to tree: what its functions have in common. In a child.
#include "sys/fs/walk.hpp"
#include "sys/process/progress_counters.hpp"
#include "tree/here.hpp"
#include "tree/workers.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

namespace sharefs::tree {

/// As many as the file systems of these directories want: a disk has few, and on a network they wait for round trips.
unsigned threads_for(std::initializer_list<int> directories);

/// A megabyte of each thread for what it reads. Most files are small, and memory that is not written to costs nothing.
std::span<char> buffer();

/// One piece of work on a tree in one process: its threads, and the errors.
class Job {
 public:
  Job(const Options& job_options, const sys::ProgressCounters& job_pulse) : options(job_options), counters(job_pulse) {}

  /// Notes a failed system call at `path`. One that will fail everywhere (a full disk) ends the work.
  void failed(int error_number, const std::string& path);
  void failed(Error error);
  /// As failed(), and no more is done.
  void stop(Error error);
  /// The first failure, with the number of them and the names of some.
  [[nodiscard]] Result<void> result() const;

  /// Does the tasks of the workers, on these directories; by more threads where a network file system takes part.
  void work(std::initializer_list<int> directories);
  /// Files that one thread may hold open: a disk has more to do with some, and the descriptors are few.
  [[nodiscard]] std::size_t at_once() const;

  /// Waits until `bytes` more may be written by Options::bytes_per_second.
  void wait_for(std::uint64_t bytes);

  const Options& options;
  const sys::ProgressCounters& counters;
  Workers workers;

 private:
  unsigned m_threads = 1;
  mutable std::mutex m_mutex;
  std::size_t m_failures = 0;
  Error m_first;
  std::vector<std::string> m_named;
  sys::Deadline m_next_write{}; ///< from when on the limit allows more
};

using sys::open_below;

/// Opens a directory for reading without changing its access time, where this process may ask for that.
sys::Fd open_unnoted(int parent, const char* name);

struct Name {
  std::string name;
  unsigned char type = 0; ///< DT_DIR, ...; never DT_UNKNOWN
};
/// The names in an open directory. 0 or errno.
int read_names(int directory, std::vector<Name>& into);

/// A directory on the way down. Its descriptors are open for as long as something below it is to be done.
struct Node {
  std::shared_ptr<Node> parent; ///< null: the tree itself
  std::string path;             ///< relative to the tree
  std::string name;
  sys::Fd fd;
  std::atomic<std::size_t> open{1}; ///< parts that are not done: below it, and itself
  int depth = 0;
  [[nodiscard]] std::string below(const std::string& what) const { return path.empty() ? what : path + "/" + what; }
};
inline constexpr int k_deepest = 1000; ///< directories in one another: each takes descriptors

/// The open directory at `place`; null: there is nothing. `or_file`: the file with the inode of `place` will do, and is
/// open by O_PATH.
struct Found {
  sys::Walked walked;
  sys::Fd fd;
  struct stat status = {};
};
Result<Found> find(const Place& place, bool or_file = false);
/// The way to `place`, whatever is there.
Result<sys::Walked> walk_to(const Place& place);
/// Opens the file at `place` for reading, which is not followed if it is a link.
Result<sys::Fd> open_file(const Place& place);
/// Reads an open file from its beginning on, at most so much. 0 or errno; `take` says false: it has enough.
int read_file(int file, std::uint64_t most, const std::function<bool(std::string_view piece)>& take);
/// What is in an open file; `counted`: what the bytes that were read count as. `magic`: how it has to begin; a file
/// that does not is not read, and has 0 bytes.
Result<FileContent> content_of(int file, const std::string& path, const sys::ProgressCounters& counters,
                               Counted counted, std::string_view magic = {});
/// As find(); nothing there is an error.
Result<Found> find_tree(const Place& place);

/// Becomes Options::reader, where one is given, before the original is opened. What the copy gets is still root's to
/// give.
Result<void> become_reader(const Options& options);

/// Allows this process as many descriptors as its hard limit.
void prepare_process();

} // namespace sharefs::tree

#pragma once
// Runs work on a tree in a child whose progress is watched. The functions of tree.hpp are built on this.
#include "sys/fs/walk.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"
#include "sys/process/progress_counters.hpp"
#include "tree/tree.hpp"

#include <array>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::tree {

/// The counters of sys::ProgressCounters for work on a tree.
enum Counted : std::size_t { k_files, k_bytes, k_steps };

/// Looks at the counters of a child, in the parent: reports them ten times a second, and notices that nothing is added.
class Watch {
 public:
  Watch(const Options& options, const OnProgress& progress, const sys::ProgressCounters& counters)
      : m_options(options), m_progress(progress), m_counters(counters) {}
  /// True if the child is to be given up: it makes no progress, or Ctrl-C was pressed. Called many times a second.
  bool gives_up();
  void report();
  /// Returns the error of the child, with the path, and the reason if it was given up.
  [[nodiscard]] Error explain(Error error, const std::string& path) const;

 private:
  const Options& m_options;
  const OnProgress& m_progress;
  const sys::ProgressCounters& m_counters;
  const sys::Deadline m_begin = sys::Clock::now();
  sys::Deadline m_reported = m_begin, m_end = sys::deadline_in(m_options.deadline);
  std::array<std::uint64_t, sys::ProgressCounters::k_counters> m_last = m_counters.all();
  bool m_stalled = false;
};

/// Clears the umask, and raises the limit of open descriptors to the hard limit.
void prepare_child();

/// Runs `work(counters)` in a child that is given up if it makes no progress for Options::deadline (`timeout`), or at
/// Ctrl-C (`interrupted`); the error then names `path`. The child ends with its parent.
template <class Work>
auto watched(const std::string& path, const Options& options, const OnProgress& progress, const Work& work) {
  using Answer = std::invoke_result_t<Work, const sys::ProgressCounters&>;
  auto counters = sys::ProgressCounters::make();
  if (!counters)
    return Answer(fail(counters.error()));
  Watch watch(options, progress, *counters);
  const auto begin = [&, parent = ::getpid()]() -> Answer {
    if (auto ends = sys::end_with(parent); !ends)
      return fail(ends.error());
    prepare_child();
    return work(*counters);
  };
  Answer answer = sys::call(options.as, std::chrono::milliseconds::max(), begin, [&] { return watch.gives_up(); });
  watch.report();
  return answer ? std::move(answer) : Answer(fail(watch.explain(answer.error(), path)));
}

/// The result of find().
struct Found {
  sys::Walked walked;
  sys::Fd fd;
  struct stat status = {};
};
/// Opens the directory at `place`; Found::fd is empty if nothing exists there. `or_file`: a file with the inode of
/// `place` is accepted as well, and is opened with O_PATH.
Result<Found> find(const Place& place, bool or_file = false);
/// Like find(), but a missing directory is an error.
Result<Found> find_tree(const Place& place);

} // namespace sharefs::tree

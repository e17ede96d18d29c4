#pragma once
// Runs work on a tree in a child whose progress is watched. The functions of tree.hpp are built on this.
#include "sys/process/progress_counters.hpp"
#include "tree/tree.hpp"

#include <sys/stat.h>

namespace sharefs::tree {

/// The counters of sys::ProgressCounters for work on a tree.
enum Counted : std::size_t { k_files, k_bytes, k_steps };

/// Calls `progress` ten times a second, in the parent.
class Reporter {
 public:
  Reporter(const Options& options, const OnProgress& progress, const sys::ProgressCounters& counters)
      : m_options(options), m_progress(progress), m_counters(counters) {}
  void report_if_due();
  void report();

 private:
  const Options& m_options;
  const OnProgress& m_progress;
  const sys::ProgressCounters& m_counters;
  const sys::Deadline m_begin = sys::Clock::now();
  sys::Deadline m_last = m_begin;
};

/// Runs `work(counters)` in a child that is given up if it makes no progress, or at Ctrl-C; the error then names
/// `path`.
template <class Work>
auto watched(const std::string& path, const Options& options, const OnProgress& progress, const Work& work) {
  using Answer = std::invoke_result_t<Work, const sys::ProgressCounters&>;
  auto counters = sys::ProgressCounters::make();
  if (!counters)
    return Answer(fail(counters.error()));
  Reporter reporter(options, progress, *counters);
  auto answer = sys::call_while(
      *counters, options.as, options.deadline,
      [&] {
        ::umask(0); // modes are set exactly as in the original
        return work(*counters);
      },
      [&] { reporter.report_if_due(); });
  reporter.report();
  if (!answer && (answer.error().code == ErrorCode::timeout || answer.error().code == ErrorCode::interrupted))
    answer.error().message = path + ": " + answer.error().message;
  return answer;
}

} // namespace sharefs::tree

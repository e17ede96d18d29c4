#pragma once
// Work on a tree in a child that is watched: what the functions of tree.hpp are made of.
#include "sys/process/progress_counters.hpp"
#include "tree/tree.hpp"

#include <sys/stat.h>

namespace sharefs::tree {

/// What a sys::ProgressCounters counts of a tree.
enum Counted : std::size_t { k_files, k_bytes, k_steps };

/// In the parent: calls `progress` ten times a second.
class Reporter {
 public:
  Reporter(const Options& options, const OnProgress& progress, const sys::ProgressCounters& counters)
      : m_options(options), m_progress(progress), m_counters(counters) {}
  void at_times();
  void at_end();

 private:
  const Options& m_options;
  const OnProgress& m_progress;
  const sys::ProgressCounters& m_counters;
  const sys::Deadline m_begin = sys::Clock::now();
  sys::Deadline m_last = m_begin;
};

/// `work(counters)` in a child that is given up when it makes no progress, or at Ctrl-C; `path` is named then.
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
        ::umask(0); // every mode is the original's
        return work(*counters);
      },
      [&] { reporter.at_times(); });
  reporter.at_end();
  if (!answer && (answer.error().code == ErrorCode::timeout || answer.error().code == ErrorCode::interrupted))
    answer.error().message = path + ": " + answer.error().message;
  return answer;
}

} // namespace sharefs::tree

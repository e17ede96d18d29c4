#pragma once
// One look at the mounts of sharefs.yaml, with what was known of them before: what has changed, what is to be
// recovered.
#include "mounts/watch/decide.hpp"
#include "mounts/watch/log_line.hpp"
#include "mounts/watch/metrics.hpp"
#include "sys/system.hpp"

#include <algorithm>
#include <functional>

namespace sharefs::mounts::watch {

/// A recovery as it ended.
struct RunEnd {
  bool busy = false;   ///< another sharefs has the host: nothing was tried
  std::string message; ///< of it, or of the first error
};

class Rounds {
 public:
  using Log = std::function<void(const LogLine&)>;
  using OpenJournal = std::function<Result<plan::Journal>()>;
  Rounds(sys::System& system, OpenJournal open_journal, Log log)
      : m_system(system), m_open_journal(std::move(open_journal)), m_log(std::move(log)) {}

  /// From here on these mounts. What is known of those that stay is kept.
  void watch_these(std::vector<MountPoint> points, Policy policy);

  /// Looks at all mounts, within seconds, and logs what has changed. Returns the names of those to recover now.
  Result<std::vector<std::string>> look(Time now);
  /// The recovery of what look() returned has ended. The next look() logs what came of it.
  void take_run(const std::vector<std::string>& names, const RunEnd& end, Time now);

  /// Something of these mounts is not as the last look() saw it in the table.
  [[nodiscard]] bool table_differs(const sys::MountTable& table) const;
  [[nodiscard]] bool all_well() const { return std::ranges::all_of(m_seen.mounts, &Watched::is_well); }
  [[nodiscard]] std::string summary() const; ///< "2 mounts well", "1 of 2 mounts not well: share (stale)"
  [[nodiscard]] const Seen& seen() const { return m_seen; }

 private:
  void take(Watched& mount, MountState state, Time now);
  void read_journal();
  void report_run();
  /// The names of those to recover, and logs why, or why not.
  std::vector<std::string> choose(Time now);
  void log(const Watched& mount, const char* event, Severity severity, std::string message) const;

  sys::System& m_system;
  OpenJournal m_open_journal;
  Log m_log;
  Policy m_policy = Policy::never;
  Seen m_seen;
  Pace m_pace;
  std::optional<RunEnd> m_ended;       ///< of a run that the next look judges
  std::optional<std::string> m_newest; ///< of the journal, when m_changes was read
  std::map<std::string, LastChange> m_changes;
};

} // namespace sharefs::mounts::watch

#pragma once
// Checks the mounts of sharefs.yaml in rounds. A round compares with the round before: it logs what has changed, and
// finds the mounts to recover.
#include "base/diagnosis.hpp"
#include "mounts/watch/decide.hpp"
#include "sys/fs/mountstats.hpp"
#include "sys/system.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sharefs::mounts::watch {

// Metrics in Prometheus' text format, for the textfile collector of node_exporter. docs/metrics.md has the table.

/// The facts about the mounts that the rounds have found.
struct WatchedFacts {
  std::vector<Watched> mounts;
  std::map<std::string, bool> servers; ///< whether a server answered, by the host name that the mounts use
  /// Number of recoveries since the start, by (mount, result); the results are "done", "failed", "busy".
  std::map<std::pair<std::string, std::string>, std::uint64_t> recoveries;
};

/// The facts about the daemon itself.
struct DaemonFacts {
  std::string version;
  std::uint64_t rounds = 0;
  std::chrono::duration<double> round_took{0};
  std::chrono::system_clock::time_point now;
  bool config_valid = true; ///< the present sharefs.yaml can be read
};

/// Returns a whole file. All labels are valid, whatever the names of the mounts. A mount that was not checked yet has
/// no metrics.
std::string format_metrics(const DaemonFacts& daemon, const WatchedFacts& watched);

// One line of the daemon's log: an observation or a decision, and the reason.

struct LogLine {
  /// started, config, state, moved, recover, left, recovered, failed, busy, staged, metrics, stopped
  std::string event = {};
  Severity severity = Severity::info;
  std::string mount = {}, target = {}; ///< empty: the line is not about a mount
  std::string state = {};              ///< state of the mount
  std::string message = {};            ///< one phrase
};

enum class LogForm {
  plain,
  json,    ///< a JSON object
  journal, ///< a JSON object after `<4>`, which systemd reads as the priority (sd-daemon(3))
};

/// Returns the line with its newline; times are UTC.
std::string format_log(const LogLine& line, LogForm form, std::chrono::system_clock::time_point now);

/// How a recovery has ended.
struct RunEnd {
  bool busy = false;   ///< another sharefs had the host lock: nothing was tried
  std::string message; ///< message about that, or about the first error
};

class Rounds {
 public:
  using Log = std::function<void(const LogLine&)>;
  using OpenJournal = std::function<Result<plan::Journal>()>;
  Rounds(sys::System& system, OpenJournal open_journal, Log log)
      : m_system(system), m_open_journal(std::move(open_journal)), m_log(std::move(log)) {}

  /// Sets the mounts to watch. The state of mounts that were watched before is kept.
  void set_mounts(std::vector<MountPoint> points, Policy policy);

  /// Checks all mounts, within seconds, and logs what has changed. Returns the names of the mounts to recover now.
  Result<std::vector<std::string>> check_mounts(Time now);
  /// Records that the recovery of these mounts has ended. The next check_mounts() logs the result.
  void add_run(const std::vector<std::string>& names, const RunEnd& end, Time now);

  /// True if the mount table has changed for one of the mounts since the last check_mounts().
  [[nodiscard]] bool table_differs(const sys::MountTable& table) const;
  [[nodiscard]] bool all_well() const { return std::ranges::all_of(m_facts.mounts, &Watched::is_well); }
  [[nodiscard]] std::string summary() const; ///< "2 mounts well", "1 of 2 mounts not well: share (stale)"
  [[nodiscard]] const WatchedFacts& facts() const { return m_facts; }

 private:
  /// True if the server of the mount answered in the last round.
  [[nodiscard]] bool server_answers(const Watched& mount) const;
  void set_state(Watched& mount, MountState state, Time now);
  void read_journal();
  /// Returns the id of the newest journal entry, "" if there is none; nullopt if its run is still at work.
  std::optional<std::string> settled_entry();
  void report_run();
  /// Returns the names of the mounts to recover, and logs why each is recovered or not.
  std::vector<std::string> choose_mounts(Time now);
  void log(const Watched& mount, const char* event, Severity severity, std::string message) const;

  sys::System& m_system;
  OpenJournal m_open_journal;
  Log m_log;
  Policy m_policy = Policy::never;
  WatchedFacts m_facts;
  std::deque<Time> m_runs;             ///< times of the last k_most_runs runs
  sys::TakeoversByTarget m_takeovers;  ///< as the last check has seen them
  std::optional<RunEnd> m_run_end;     ///< end of a run whose result the next check shows
  std::optional<std::string> m_newest; ///< id of the newest journal entry when m_changes was read
  std::map<std::string, LastChange> m_changes;
  std::string m_settled; ///< what settled_entry() has returned last
};

} // namespace sharefs::mounts::watch

#pragma once
// One look at the mounts of sharefs.yaml, with what was known of them before: what has changed, what is to be
// recovered.
#include "cli/commands/mount/support.hpp"
#include "watch/decide.hpp"
#include "watch/log_line.hpp"
#include "watch/metrics.hpp"

#include <functional>

namespace sharefs::cli {

/// A recovery as it ended.
struct RunEnd {
  bool busy = false;   ///< another sharefs has the host: nothing was tried
  std::string message; ///< of it, or of the first error
};

class WatchRounds {
 public:
  using Say = std::function<void(watch::LogLine)>;
  explicit WatchRounds(Say say) : m_say(std::move(say)) {}

  /// From here on these mounts. What is known of those that stay is kept.
  void watch_these(std::vector<mounts::MountPoint> points, watch::Policy policy);

  /// Looks at all mounts, within seconds, and says what has changed. Returns the names of those to recover now.
  Result<std::vector<std::string>> look(Context& context, watch::Time now);
  /// The recovery of what look() returned has ended. The next look() says what came of it.
  void take_run(const std::vector<std::string>& names, const RunEnd& end, watch::Time now);

  /// Something of these mounts is not as the last look() saw it in the table.
  [[nodiscard]] bool table_differs(const sys::MountTable& table) const;
  [[nodiscard]] bool all_well() const;
  [[nodiscard]] std::string summary() const; ///< "2 mounts are well", "1 of 2 mounts is not well: share (stale)"
  /// Of the last look; what only the daemon knows is left as it is.
  void put_figures(watch::Figures& figures) const;

 private:
  /// A mount between two rounds.
  struct Known {
    mounts::MountPoint point;
    std::optional<mounts::MountState> state; ///< nullopt: not looked at yet
    watch::Trouble trouble = watch::Trouble::none;
    std::size_t looks = 0; ///< in a row, with this trouble
    std::string why;       ///< as it was last said
    std::size_t hung = 0;  ///< looks in a row that hung
    watch::Time rests_until;
  };
  void take(Known& known, mounts::MountState state, watch::Time now);
  void read_journal(Context& context);
  void report_run();
  /// The names of those to recover, and says why, or why not.
  std::vector<std::string> choose(watch::Time now);

  Say m_say;
  watch::Policy m_policy = watch::Policy::never;
  std::vector<Known> m_known;
  std::map<std::string, bool> m_servers; ///< whether each answered
  watch::Pace m_pace;
  std::optional<RunEnd> m_ended;       ///< of a run that the next look judges
  std::set<std::string> m_run;         ///< its targets
  std::optional<std::string> m_newest; ///< of the journal, when m_changes was read
  std::map<std::string, watch::LastChange> m_changes;
  std::map<std::pair<std::string, std::string>, std::uint64_t> m_recoveries;
};

} // namespace sharefs::cli

#pragma once
// The journal: what was about to be done, written and fsynced before each step, so that a plan can be undone and so that
// a run that was killed tells how far it came. One directory per plan: STATE/journal/ID/ with plan.json and steps.jsonl.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::plan {

enum class JournalState {
  running,     ///< its process still lives
  complete,    ///< every step was done
  failed,      ///< it ended by itself with failed or skipped steps
  unfinished,  ///< its process is gone without an end mark: killed, or the machine went down
  undone,      ///< `sharefs undo` took it back
};
const char* to_string(JournalState state);

struct JournalStep {
  std::size_t step = 0;
  bool begun = false, ended = false;
  Outcome outcome = Outcome::skipped;
};

struct JournalEntry {
  std::string id;      ///< 20260131-120000-PID: sorts by time
  std::string command; ///< the command line, quoted
  std::string user, started;
  JournalState state = JournalState::unfinished;
  Plan plan;
  std::vector<JournalStep> steps;
};

/// /var/lib/sharefs for root; for other users $XDG_STATE_HOME/sharefs or ~/.local/state/sharefs unless that lies on a
/// shared or network file system, then /var/tmp/sharefs-UID (0700, owner checked).
std::string state_directory(const sys::Identity& identity, const sys::MountTable& mounts);

class Journal {
public:
  explicit Journal(const sys::Files& files, std::string state_directory);

  /// Newest first. A damaged entry is listed as unfinished with an empty plan, never an error.
  [[nodiscard]] Result<std::vector<JournalEntry>> list() const;
  /// `not_found` with a "did you mean" hint.
  [[nodiscard]] Result<JournalEntry> load(const std::string& id) const;
  /// The newest entry that changed something and is not undone; nullopt if there is none.
  [[nodiscard]] Result<std::optional<JournalEntry>> latest() const;

  // Writing; used by apply().
  Result<std::string> begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                            std::chrono::system_clock::time_point now) const; ///< returns the new id
  Result<void> step_begins(const std::string& id, std::size_t step, const Action& intent) const;
  Result<void> step_ended(const std::string& id, const StepResult& result) const;
  Result<void> end(const std::string& id, const Report& report) const;
  Result<void> mark_undone(const std::string& id, const std::string& by) const;
  /// Entries beyond the newest `keep` are deleted (never a running or unfinished one).
  Result<void> prune(std::size_t keep = 200) const;

private:
  const sys::Files& m_files;
  std::string m_directory;
};

/// The plan that takes an entry back: the inverse of every step that was done or begun, last first, conflicts guarded
/// by the actions' own `before`. Steps without an inverse become notes. A step that was begun but whose end is not known
/// is undone only as far as it took effect (the inverse of something that did not happen is "unchanged").
Plan undo_plan(const JournalEntry& entry);

} // namespace sharefs::plan

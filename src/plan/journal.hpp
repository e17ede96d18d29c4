#pragma once
// The journal: what was about to be done, written and fsynced before each step, so that a plan can be undone and so
// that a run that was killed tells how far it came. One directory per plan: STATE/journal/ID/ with plan.json and
// steps.jsonl.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::plan {

enum class JournalState {
  running,    ///< its process still lives
  complete,   ///< every step was done
  failed,     ///< it ended by itself with failed or skipped steps
  unfinished, ///< its process is gone without an end mark: killed, or the machine went down
  undone,     ///< `sharefs undo` took it back
};
const char* to_string(JournalState state);

struct JournalStep {
  std::size_t step = 0;
  bool begun = false, ended = false;
  Outcome outcome = Outcome::skipped;
  std::optional<ErrorCode> error = std::nullopt; ///< of a failed step

  /// It changed something, or may have: done, or begun without a known end, or failed on its way (but not by
  /// `conflict`, which is found out before anything is touched).
  [[nodiscard]] bool took_effect() const;
};

struct JournalEntry {
  std::string id;      ///< 20260131-120000-PID: sorts by time
  std::string command; ///< the command line, quoted
  std::string user, started;
  JournalState state = JournalState::unfinished;
  Plan plan;                      ///< the actions as they were begun: with the modes and the access that were found
  std::vector<JournalStep> steps; ///< one per step of the plan
  std::string undone_by;          ///< id of the undo's own entry, if it changed anything; for the state `undone`

  [[nodiscard]] bool is_undo() const { return !plan.undoes.empty(); }
};

/// /var/lib/sharefs for root; for other users $XDG_STATE_HOME/sharefs or ~/.local/state/sharefs unless that lies on a
/// shared or network file system, then /var/tmp/sharefs-UID (0700, owner checked).
std::string state_directory(const sys::Identity& identity, const sys::MountTable& mounts);

class Journal {
 public:
  explicit Journal(const sys::Files& files, std::string state_directory);

  /// Newest first. A damaged entry is listed as unfinished with an empty plan, never an error.
  [[nodiscard]] Result<std::vector<JournalEntry>> list() const;
  /// Id of the newest entry, readable or not: it changes with every run that changes something. Empty for none.
  [[nodiscard]] std::string newest_id() const;
  /// `not_found` with a "did you mean" hint.
  [[nodiscard]] Result<JournalEntry> load(const std::string& id) const;
  /// The newest entry that changed something and is not undone; nullopt if there is none. An undo's own entry is passed
  /// over, so that `sharefs undo` after an undo that was cut off completes it, and after a complete one goes further
  /// back.
  [[nodiscard]] Result<std::optional<JournalEntry>> latest() const;

  // Writing; used by apply().
  Result<std::string> begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                            std::chrono::system_clock::time_point now) const; ///< returns the new id
  Result<void> step_begins(const std::string& id, std::size_t step, const Action& intent) const;
  Result<void> step_ended(const std::string& id, const StepResult& result) const;
  Result<void> steps_ended(const std::string& id, const std::vector<StepResult>& results) const; ///< with one fsync
  Result<void> end(const std::string& id, const Report& report) const;
  /// Called by apply() for a plan that `undoes` the entry `id`. If that entry is itself an undo, what it took back is
  /// in force again and no longer counts as undone.
  Result<void> mark_undone(const std::string& id, const std::string& by) const;
  /// Entries beyond the newest `keep` are deleted (never a running or unfinished one).
  Result<void> prune(std::size_t keep = 200) const;

 private:
  const sys::Files& m_files;
  std::string m_state_directory;
};

/// The plan that takes an entry back: the inverse of every step that was done or begun, last first, conflicts guarded
/// by the actions' own `before`. Steps without an inverse become notes. A step that was begun but whose end is not
/// known is undone only as far as it took effect (the inverse of something that did not happen is "unchanged"). A
/// harmless tool (a reload) has no inverse: it is run again once, at the end. All steps are in one group. `entries` is
/// the journal: what an earlier undo of the same entry, cut off or failed, has taken back already is left out.
Plan undo_plan(const JournalEntry& entry, const std::vector<JournalEntry>& entries = {});

} // namespace sharefs::plan

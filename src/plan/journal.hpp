#pragma once
// The journal: what was about to be done, written and fsynced before each step, so that a plan can be undone and so
// that a run that was killed shows how far it came. One directory per plan that changed something:
//   STATE/journal/ID/plan.json    written once
//   STATE/journal/ID/steps.jsonl  one line appended and fsynced per event; made with the first intent in it
// Names that begin with a dot are entries that are being made or deleted.
#include "plan/plan.hpp"
#include "plan/private_directory.hpp"
#include "sys/system.hpp"

#include <functional>
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
  unreadable, ///< damaged, or of a later version: what it changed is not known
};
const char* to_string(JournalState state);

struct JournalStep {
  std::size_t step = 0;
  bool begun = false, ended = false;
  Outcome outcome = Outcome::skipped;
  std::optional<ErrorCode> error = std::nullopt; ///< of a failed step

  /// Whether the step changed something, or may have: it is done, or was begun and has no known end, or failed on its
  /// way (but not by `conflict`, which is found before anything is changed).
  [[nodiscard]] bool took_effect() const;
};

struct JournalEntry {
  std::string id;      ///< a number, counted under the host lock
  std::string command; ///< the command line, quoted
  std::string user, started;
  JournalState state = JournalState::unfinished;
  std::string damage;             ///< of an unreadable one: "its plan.json is damaged"
  Plan plan;                      ///< the actions as they were begun: with the modes and the access that were found
  std::vector<JournalStep> steps; ///< one per step of the plan
  std::string undone_by;          ///< id of the undo's own entry, if it changed anything; for the state `undone`

  [[nodiscard]] bool is_undo() const { return !plan.undoes.empty(); }
  /// For good.
  [[nodiscard]] bool has_deleted() const;
};

/// This is written before an action begins. With it go the steps that found nothing to do: an undo that is cut off and
/// run again must not check them twice, because later steps may have changed what they saw.
struct Intent {
  std::size_t step = 0;
  Action action; ///< with what was found
  std::vector<StepResult> unchanged = {};
};

/// /var/lib/sharefs for root; for other users $XDG_STATE_HOME/sharefs or ~/.local/state/sharefs unless that lies on a
/// shared or network file system (a journal is about one host), then /var/tmp/sharefs-UID. If somebody else has taken
/// that name, a directory /var/tmp/sharefs-UID-RANDOM, which is found again by its owner and mode.
std::string state_directory(const sys::Files& files, const sys::Identity& identity, const sys::MountTable& mounts);

class Journal {
 public:
  explicit Journal(const sys::Files& files, std::string state_directory);

  /// Newest first, one in memory at a time: an entry may hold whole files. One that cannot be read comes with its
  /// damage, never as an error.
  [[nodiscard]] Result<void> each(const std::function<void(JournalEntry)>& see) const;
  /// Those that were to take back the entry `id`, newest first.
  [[nodiscard]] Result<std::vector<JournalEntry>> undos_of(const std::string& id) const;
  /// Id of the newest entry, readable or not: it changes with every run that changes something. Empty for none.
  [[nodiscard]] Result<std::string> newest_id() const;
  /// `not_found` with a "did you mean" hint.
  [[nodiscard]] Result<JournalEntry> load(const std::string& id) const;
  /// The newest entry that changed something and is not undone; nullopt if there is none. An undo's own entry is passed
  /// over, so that `sharefs undo` after an undo that was cut off completes it, and after a complete one goes further
  /// back. An entry that cannot be read is not passed over: an error says so. One that has deleted something is: what
  /// is left of it cannot be taken back as it was (`passed`, newest first).
  [[nodiscard]] Result<std::optional<JournalEntry>> latest(std::vector<JournalEntry>* passed = nullptr) const;

  // Writing; used by apply(), under the host lock.
  /// A new entry with its first intent; returns its id.
  Result<std::string> begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                            std::chrono::system_clock::time_point now, const Intent& first) const;
  Result<void> step_begins(const std::string& id, const Intent& intent) const;
  Result<void> step_ended(const std::string& id, const StepResult& result) const;
  Result<void> end(const std::string& id, const Report& report) const;
  /// Called by apply() for a plan that `undoes` the entry `id`. If that entry is itself an undo, what it took back is
  /// in force again and no longer counts as undone.
  Result<void> mark_undone(const std::string& id, const std::string& by) const;
  /// The newest entries stay: `keep` of them, and of those as many as have `bytes` together, but always the newest one
  /// and each that is still running. Of all older ones nothing can be taken back any more.
  Result<void> prune(std::size_t keep = k_most_entries, std::uint64_t bytes = k_most_bytes) const;
  static constexpr std::size_t k_most_entries = 200;
  static constexpr std::uint64_t k_most_bytes = 64U << 20U;

 private:
  struct Contents {
    std::optional<PrivateDirectory> directory;          ///< STATE/journal; nullopt: there is none
    std::vector<std::string> names;                     ///< of all that is in it
    [[nodiscard]] std::vector<std::string> ids() const; ///< of entries, oldest first
  };
  [[nodiscard]] Result<std::optional<PrivateDirectory>> directory() const;
  [[nodiscard]] Result<Contents> contents() const;
  /// `not_found` if there is none.
  [[nodiscard]] Result<PrivateDirectory> entry(const std::string& id) const;
  Result<void> append(const std::string& id, const std::string& line) const;

  const sys::Files& m_files;
  std::string m_state_directory;
};

/// The plan that takes an entry back: the inverse of every step that was done or begun, last first, conflicts guarded
/// by the actions' own `before`. Steps keep their groups, so that one that fails stops only its own; what was to be
/// done before all groups is taken back after all of them. Steps without an inverse become notes. A step that was begun
/// but whose end is not known is undone only as far as it took effect (the inverse of something that did not happen is
/// "unchanged"). A harmless tool (a reload) has no inverse: it is run again once, at the end of its group. `attempts`
/// are the undos of the same entry: what one of them, cut off or failed, has taken back already is left out.
Plan undo_plan(const JournalEntry& entry, const std::vector<JournalEntry>& attempts = {});

// For tests.
std::string current_boot_id();

} // namespace sharefs::plan

#pragma once
// The journal: each step is written and fsynced before it begins, so that a plan can be undone, and so that the journal
// shows how far a killed run came. There is one directory per plan that changed something:
//   STATE/journal/ID/plan.json    written once
//   STATE/journal/ID/steps.jsonl  made with the first intent in it; then one line per event is appended and fsynced
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
  running,    ///< the process that wrote it still runs
  complete,   ///< every step was done
  failed,     ///< the run ended by itself, with failed or skipped steps
  unfinished, ///< the process ended without an end mark: it was killed, or the machine went down
  undone,     ///< `sharefs undo` took it back
  unreadable, ///< it is damaged, or a later version wrote it: its changes are not known
};
const char* to_string(JournalState state);

struct JournalStep {
  std::size_t step = 0;
  bool begun = false, ended = false;
  Outcome outcome = Outcome::skipped;
  std::optional<ErrorCode> error = std::nullopt; ///< of a failed step

  /// True if the step changed something, or may have: it is done, it was begun and its end is not known, or it failed
  /// after it began. A `conflict` does not count, because it is found before anything is changed.
  [[nodiscard]] bool took_effect() const;
};

struct JournalEntry {
  std::string id;      ///< a number, counted under the host lock
  std::string command; ///< the command line, quoted
  std::string user, started;
  std::string boot_id; ///< boot of the host in which it was written
  JournalState state = JournalState::unfinished;
  std::string damage;             ///< of an unreadable entry: "its plan.json is damaged"
  Plan plan;                      ///< the actions as they began, with the modes and the access that were found
  std::vector<JournalStep> steps; ///< one per step of the plan
  std::string undone_by;          ///< for the state `undone`: id of the undo's entry, if the undo changed anything

  [[nodiscard]] bool is_undo() const { return !plan.undoes.empty(); }
  /// True if a step has deleted something that no undo can bring back.
  [[nodiscard]] bool has_deleted() const;
};

/// An intent is written before an action begins, together with the steps that found nothing to do. If an undo is killed
/// and run again, it must not check those steps a second time, because later steps may have changed what they saw.
struct Intent {
  std::size_t step = 0;
  Action action; ///< with the modes and the access that were found
  std::vector<StepResult> unchanged = {};
};

/// Returns /var/lib/sharefs for root. For other users it is $XDG_STATE_HOME/sharefs or ~/.local/state/sharefs; if that
/// lies on a shared or network file system, it is /var/tmp/sharefs-UID, because a journal is about one host. If
/// somebody else has taken that name, it is /var/tmp/sharefs-UID-RANDOM, which is found again by its owner.
std::string state_directory(const sys::Files& files, const sys::Identity& identity, const sys::MountTable& mounts);

class Journal {
 public:
  explicit Journal(const sys::Files& files, std::string state_directory);

  /// Calls `see` with each entry, newest first. Only one entry is in memory at a time, because it may hold whole files.
  /// An entry that cannot be read has its `damage` set; it is no error.
  [[nodiscard]] Result<void> for_each(const std::function<void(JournalEntry)>& see) const;
  /// Returns the undos of the entry `id`, newest first, without the steps on paths that a later run has changed again.
  [[nodiscard]] Result<std::vector<JournalEntry>> find_undos(const std::string& id) const;
  /// Returns the id of the newest entry, readable or not; empty if there is none. It changes with every run that
  /// changes something.
  [[nodiscard]] Result<std::string> newest_id() const;
  /// Reads one entry. Error `not_found`, with a "did you mean" hint if an id is similar.
  [[nodiscard]] Result<JournalEntry> load(const std::string& id) const;
  /// Returns the newest entry that changed something and is not undone; nullopt if there is none. Entries of undos are
  /// skipped: after an undo that was killed, `sharefs undo` completes it, and after a complete one it goes further
  /// back. Entries that deleted something are skipped, too, and put into `passed` (newest first), because they cannot
  /// be taken back as a whole. An entry that cannot be read is not skipped: it is returned, with its `damage`.
  [[nodiscard]] Result<std::optional<JournalEntry>> find_latest(std::vector<JournalEntry>* passed = nullptr) const;

  // Writing; used by apply(), under the host lock.
  /// Makes a new entry with its first intent, and returns its id.
  Result<std::string> begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                            std::chrono::system_clock::time_point now, const Intent& first) const;
  Result<void> begin_step(const std::string& id, const Intent& intent) const;
  Result<void> end_step(const std::string& id, const StepResult& result) const;
  Result<void> end(const std::string& id, const Report& report) const;
  /// Marks the entry `id` as undone; apply() calls this for a plan that `undoes` it. If that entry is itself an undo,
  /// the entry that it took back no longer counts as undone.
  Result<void> mark_undone(const std::string& id, const std::string& by) const;
  /// Deletes old entries. At most `keep` of the newest entries stay, as long as they have no more than `bytes`
  /// together. The newest entry always stays, and so does each entry that is still running. A deleted entry cannot be
  /// undone any more.
  Result<void> prune(std::size_t keep = k_most_entries, std::uint64_t bytes = k_most_bytes) const;
  static constexpr std::size_t k_most_entries = 200;
  static constexpr std::uint64_t k_most_bytes = 64U << 20U;

 private:
  struct Contents {
    std::optional<PrivateDirectory> directory;          ///< STATE/journal; nullopt: there is none
    std::vector<std::string> names;                     ///< all names in it
    [[nodiscard]] std::vector<std::string> ids() const; ///< ids of the entries, oldest first
  };
  [[nodiscard]] Result<std::optional<PrivateDirectory>> directory() const;
  [[nodiscard]] Result<Contents> contents() const;
  /// Opens the directory of an entry. Error `not_found` if there is none.
  [[nodiscard]] Result<PrivateDirectory> entry(const std::string& id) const;
  Result<void> append(const std::string& id, const std::string& line) const;

  const sys::Files& m_files;
  std::string m_state_directory;
};

/// Returns the plan that takes an entry back: the inverse of every step that was done or begun, last first. The
/// `before` of each inverse finds conflicts. Steps keep their groups, so that a failure stops only its own group; the
/// unnamed group, which ran before all others, is taken back after them. Steps without an inverse become notes. If the
/// end of a step is not known, its inverse is planned, and is "unchanged" if the step did not happen. A harmless tool
/// (a reload) has no inverse: it is run again once, at the end of its group. A directory that the entry made keeps its
/// access until it is removed. `attempts` are earlier undos of the same
/// entry, killed or failed: steps that one of them has already taken back are left out.
Plan plan_undo(const JournalEntry& entry, const std::vector<JournalEntry>& attempts = {});

} // namespace sharefs::plan

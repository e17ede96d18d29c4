#pragma once
// A plan is a value that says what a command is going to do. Rooms make plans; cli::execute shows and applies them.
#include "plan/action.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sharefs::plan {

struct Step {
  std::string group; ///< steps of a group run in order, groups in parallel; the unnamed group runs before all others
  std::string why;   ///< the reason, one phrase for the person who reads the plan
  Action action;
  bool stays = false; ///< undo does not take this step back, because others may already use its result
  /// The step writes only sharefs' own records, notes, marks or hidden names. It is shown with --verbose only.
  bool bookkeeping = false;
  /// Undo takes this step back only as long as the plan has deleted nothing: it belongs to a deletion.
  bool stays_deleted = false;
  friend bool operator==(const Step&, const Step&) = default;
};

struct Plan {
  std::vector<Step> steps;
  std::vector<std::string> notes; ///< shown before the steps: consequences, and what is left alone and why
  std::string undoes = {};        ///< id of the journal entry that this plan takes back; empty if it is no undo
  /// The unnamed group runs after all others, if they have all succeeded: an undo reverses the order of a plan in which
  /// it ran first.
  bool unnamed_last = false;

  [[nodiscard]] bool empty() const { return steps.empty(); }
  void add(std::string group, std::string why, Action action, bool stays = false) {
    steps.push_back({std::move(group), std::move(why), std::move(action), stays});
  }
  void add_bookkeeping(std::string group, std::string why, Action action, bool stays = false) {
    steps.push_back({std::move(group), std::move(why), std::move(action), stays, true});
  }
  /// Appends the steps and notes of another plan.
  void add(const Plan& more) {
    steps.insert(steps.end(), more.steps.begin(), more.steps.end());
    notes.insert(notes.end(), more.notes.begin(), more.notes.end());
  }
  friend bool operator==(const Plan&, const Plan&) = default;
};

enum class Outcome {
  done,
  unchanged, ///< there was nothing to do: the machine was already as the step makes it
  failed,
  skipped, ///< not begun: an earlier step of the group failed, or Ctrl-C was pressed
};
const char* to_string(Outcome outcome);
/// True if the machine is now as the step makes it.
inline bool is_good(Outcome outcome) {
  return outcome == Outcome::done || outcome == Outcome::unchanged;
}

struct StepResult {
  std::size_t step = 0; ///< index in Plan::steps
  Outcome outcome = Outcome::skipped;
  std::optional<Error> error;
  std::chrono::milliseconds took{0};
};

template <FieldsOf<StepResult> R> auto fields(R& r) {
  return named("step", r.step, "outcome", r.outcome, "error", r.error, "took_ms", r.took);
}

struct Report {
  std::vector<StepResult> results; ///< one per step, in the order of the plan
  std::string journal_id;          ///< empty: nothing was changed
  bool interrupted = false;        ///< Ctrl-C ended the run after the steps that were running
  /// An error that no step has caused: ApplyOptions::before_groups has failed, or the journal cannot be written. Steps
  /// that were not begun by then are skipped. If ok(), the work is done, and only its end is missing in the journal.
  std::optional<Error> error = {};
  /// The entries of this command's earlier plans, oldest first.
  std::vector<std::string> earlier_ids = {};

  [[nodiscard]] bool ok() const { return count_good() == results.size(); }
  [[nodiscard]] std::size_t count_good() const;
  [[nodiscard]] std::size_t count(Outcome) const;
};
template <FieldsOf<Report> R> auto fields(R& r) {
  return named("results", r.results, "journal_id", r.journal_id, "interrupted", r.interrupted, "error", r.error);
}

/// True if `undo` should be offered: something was done that it takes back, and nothing was deleted for good.
bool can_be_undone(const Plan& plan, const Report& report);

/// A long step calls this with its progress, or (`lasting`) with its result.
using Note = std::function<void(const std::string& text, bool lasting)>;

nlohmann::ordered_json
to_json(const Plan& plan); ///< {"steps": [{group, why, description, undoable, action}], "notes": []}

/// Merges groups if a path of one lies inside a path of the other. The steps keep the order of the plan.
Plan merge_nested_groups(Plan plan);

} // namespace sharefs::plan

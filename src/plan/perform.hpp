#pragma once
// Private to plan: an action in two phases. apply() checks first, and writes to the journal between the two. So an
// intent in the journal always means that the work was not done before, and undo never removes what was already there.
#include "plan/action_fields.hpp"
#include "plan/actor_root.hpp"
#include "plan/check_action.hpp"
#include "plan/plan.hpp"
#include "sys/process/wire.hpp"
#include "sys/system.hpp"

namespace sharefs::plan {

enum class Phase {
  check,   ///< changes nothing; returns `unchanged` if the work is done already, `done` if it can begin
  perform, ///< does the work; returns `unchanged` if there was nothing to do after all
};

Result<Outcome> perform(const Action& action, sys::System& system, const Note& note = nullptr);

/// The result of a phase of an action.
struct Acted {
  Outcome outcome;
  std::optional<Access> found; ///< in Phase::check, for undo: the access, or only the mode of what is removed
  std::string reason;          ///< why something was left as it is and that is no error

  // NOLINTNEXTLINE(google-explicit-constructor): most actions have only an outcome
  Acted(Outcome made = Outcome::unchanged, std::optional<Access> was = {}, std::string why = {})
      : outcome(made), found(std::move(was)), reason(std::move(why)) {}
};
template <FieldsOf<Acted> A> auto fields(A& acted) {
  return named("outcome", acted.outcome, "found", acted.found, "reason", acted.reason);
}

// One overload per action, called by check_action() and perform().

// In the main process, by sys::Files; in a child if the action has an actor.
Result<Acted> act(const File& action, const sys::Files& files, Phase phase);
// In this process on a disk of this host where nobody else can make names, otherwise in a child with a deadline.
Result<Acted> act(const Directory& action, const ActorRoot& base, Phase phase);
Result<Acted> act(const Link& action, const ActorRoot& base, Phase phase);
Result<Acted> act(const Rename& action, const ActorRoot& base, Phase phase);
Result<Acted> act(const ExchangeForLink& action, const ActorRoot& base, Phase phase);
Result<Acted> act(const SetAccess& action, const ActorRoot& base, Phase phase);
Result<Acted> act(const SetImmutable& action, const ActorRoot& base, Phase phase);
// By System; each action has its own deadline.
Result<Acted> act(const Mount& action, sys::System& system, Phase phase);
Result<Acted> act(const Unmount& action, sys::System& system, Phase phase);
Result<Acted> act(const Remount& action, sys::System& system, Phase phase);
Result<Acted> act(const RunTool& action, sys::System& system, Phase phase);
Result<Acted> act(const RemoveTree& action, sys::System& system, Phase phase, const Note& note);
Result<Acted> act(const ChangeFiles& action, sys::System& system, Phase phase, const Note& note);
Result<Acted> act(const SetTreeAccess& action, sys::System& system, Phase phase, const Note& note);

/// Returns the note about a directory that is not removed.
inline std::string not_empty(const std::string& path) {
  return path + ": the directory is not empty and stays";
}

/// Fsyncs the directory that holds `found`, and returns `done`.
Result<Outcome> synced(const sys::Walked& found, const std::string& path);

} // namespace sharefs::plan

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

// One overload per action, called by check_action() and perform(). In Phase::check it may write what it found into the
// action.

// In the main process, by sys::Files; in a child if the action has an actor.
Result<Outcome> act(File& action, const sys::Files& files, Phase phase);
// In this process on a disk of this host where nobody else can make names, otherwise in a child with a deadline.
Result<Outcome> act(Directory& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(Link& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(Rename& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(ExchangeForLink& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(SetAccess& action, const ActorRoot& base, Phase phase);
/// Sets `reason` if the directory was left as it is and that is no error.
Result<Outcome> act(SetImmutable& action, const ActorRoot& base, Phase phase, std::string& reason);
// By System; each action has its own deadline.
Result<Outcome> act(Mount& action, sys::System& system, Phase phase);
Result<Outcome> act(Unmount& action, sys::System& system, Phase phase);
Result<Outcome> act(Remount& action, sys::System& system, Phase phase);
Result<Outcome> act(RunTool& action, sys::System& system, Phase phase);
Result<Outcome> act(RemoveTree& action, sys::System& system, Phase phase, const Note& note);
Result<Outcome> act(ChangeFiles& action, sys::System& system, Phase phase, const Note& note);
Result<Outcome> act(SetTreeAccess& action, sys::System& system, Phase phase, const Note& note);

/// Fsyncs the directory that holds `found`, and returns `done`.
Result<Outcome> synced(const sys::Walked& found, const std::string& path);

} // namespace sharefs::plan

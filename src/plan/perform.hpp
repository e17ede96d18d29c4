#pragma once
// Private to plan: an action in two phases. `apply` looks first and writes to the journal between the two, so that an
// intent in the journal always means "it was not so before": undo never takes away what was there already.
#include "plan/action_fields.hpp"
#include "plan/actor_root.hpp"
#include "plan/look.hpp"
#include "plan/plan.hpp"
#include "sys/process/wire.hpp"
#include "sys/system.hpp"

namespace sharefs::plan {

enum class Phase {
  look,    ///< change nothing; `unchanged` if the work is done already, else `done`: it can begin
  perform, ///< do it; `unchanged` if there was nothing to do after all
};

Result<Outcome> perform(const Action& action, sys::System& system, const Note& note = nullptr);

// One overload per action; look_at and perform dispatch to them. In Phase::look an action may fill in what it found.

// In the main process: files under /etc and the like (Files).
Result<Outcome> act(File& action, const sys::Files& files, Phase phase);
// In a child with a deadline.
Result<Outcome> act(Directory& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(Link& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(Rename& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(ExchangeForLink& action, const ActorRoot& base, Phase phase);
Result<Outcome> act(SetAccess& action, const ActorRoot& base, Phase phase);
/// `reason`: why it was left as it is, where that is no error.
Result<Outcome> act(SetImmutable& action, const ActorRoot& base, Phase phase, std::string& reason);
// Through System, each with its own deadline.
Result<Outcome> act(Mount& action, sys::System& system, Phase phase);
Result<Outcome> act(Unmount& action, sys::System& system, Phase phase);
Result<Outcome> act(Remount& action, sys::System& system, Phase phase);
Result<Outcome> act(RunTool& action, sys::System& system, Phase phase);
Result<Outcome> act(RemoveTree& action, sys::System& system, Phase phase, const Note& note);
Result<Outcome> act(ChangeFiles& action, sys::System& system, Phase phase, const Note& note);
Result<Outcome> act(SetTreeAccess& action, sys::System& system, Phase phase, const Note& note);

/// fsync of the directory that holds `found`, then `done`.
Result<Outcome> synced(const sys::Walked& found, const std::string& path);

} // namespace sharefs::plan

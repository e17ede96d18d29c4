// RemoveTree, by the engine for trees.
#include "base/text.hpp"
#include "plan/perform.hpp"
#include "tree/tree.hpp"

#include <fmt/format.h>

namespace sharefs::plan {

Result<Outcome> act(RemoveTree& action, sys::System& system, Phase phase, const Note& note) {
  if (action.inode == 0) // to tree:: it would be any
    return conflict(action.path, "what the plan was made for", "a plan for none");
  const tree::Place place{.path = action.path,
                          .root = system.files().root(),
                          .guarded = action.guarded && !action.actor,
                          .beneath = action.actor ? action.actor->beneath : "",
                          .device = action.device,
                          .inode = action.inode};
  tree::Options options;
  options.deadline = action.deadline;
  if (action.actor)
    options.as = action.actor->user;
  if (phase == Phase::look)
    return tree::exists(place, options).map([](bool is_there) {
      return is_there ? Outcome::done : Outcome::unchanged;
    });
  const auto removed = tree::remove(place, options, [&](const tree::Progress& progress) {
    if (note && progress.files > 0)
      note(fmt::format("{} of {} deleted", count_of(progress.files, "name"), action.path), false);
  });
  if (!removed && removed.error().code == ErrorCode::interrupted)
    return fail(ErrorCode::interrupted, action.path + ": stopped while it was deleted",
                "run the command again, it goes on from here");
  if (!removed)
    return fail(removed.error());
  return removed->removed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

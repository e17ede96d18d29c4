// RemoveTree and SetTreeAccess, by src/tree.
#include "base/text.hpp"
#include "plan/perform.hpp"
#include "tree/share_with_group.hpp"
#include "tree/tree.hpp"

#include <fmt/format.h>

namespace sharefs::plan {

namespace {

/// Returns "300012 paths changed; left as they are: 2 paths (bin/su: a program with set-id bits or capabilities, ...)".
std::string text_of(const tree::GroupReport& report) {
  auto text = count_of(report.changed, "path") + " changed";
  if (report.left > 0)
    text += fmt::format("; left as they are: {} ({}{})", count_of(report.left, "path"), join(report.named, ", "),
                        report.left > report.named.size() ? ", ..." : "");
  return text;
}

Error explain(Error error, const std::string& path) {
  if (error.code == ErrorCode::interrupted)
    return {ErrorCode::interrupted, path + ": stopped on the way", "run the command again, it goes on from here", ""};
  return error;
}

} // namespace

Result<Acted> act(const RemoveTree& action, sys::System& system, Phase phase, const Note& note) {
  const tree::Place place{.path = action.path,
                          .root = system.files().root(),
                          .guarded = action.guarded && !action.actor,
                          .beneath = action.actor ? action.actor->beneath : "",
                          .device = action.device,
                          .inode = action.inode};
  const tree::Options options{.deadline = action.deadline,
                              .as = action.actor ? std::optional(action.actor->user) : std::nullopt,
                              .aside = action.aside};
  if (phase == Phase::check)
    return tree::exists(place, options).map([](bool is_there) {
      return is_there ? Outcome::done : Outcome::unchanged;
    });
  const auto removed = tree::remove(place, options, [&](const tree::Progress& progress) {
    if (note && progress.files > 0)
      note(fmt::format("{} of {} deleted", count_of(progress.files, "name"), action.path), false);
  });
  if (!removed)
    return fail(explain(removed.error(), action.path));
  return *removed > 0 ? Outcome::done : Outcome::unchanged;
}

Result<Acted> act(const SetTreeAccess& action, sys::System& system, Phase phase, const Note& note) {
  const tree::Place place{.path = action.path,
                          .root = system.files().root(),
                          .guarded = true,
                          .device = action.device,
                          .inode = action.inode};
  const auto report =
      tree::share_with_group(place, {action.gid, action.mode, phase == Phase::check}, {.deadline = action.deadline},
                             [&](const tree::Progress& progress) {
                               if (note && progress.files > 0)
                                 note(fmt::format("{} of {}", count_of(progress.files, "path"), action.path), false);
                             });
  if (!report) {
    auto error = explain(report.error(), action.path);
    if (error.hint.empty())
      error.hint = "the others are changed; correct this one, and run the command again";
    return fail(std::move(error));
  }
  if (phase == Phase::perform && note && (report->changed > 0 || !report->named.empty()))
    note(action.path + ": " + text_of(*report), true);
  return report->changed > 0 ? Outcome::done : Outcome::unchanged;
}

} // namespace sharefs::plan

#include "cli/commands/conda_copy.hpp"

#include "conda/compiled.hpp"
#include "conda/share.hpp"
#include "plan/apply.hpp"

#include <algorithm>

namespace sharefs::cli {

Result<void> close_tree(const tree::Place& tree, const sys::Entry& store, bool protect, bool give_group,
                        const conda::EnvironmentState* of) {
  tree::Modes modes;
  modes.mode = conda::generation_mode(store.mode, protect);
  if (give_group && (store.mode & 02000U) != 0)
    modes.gid = store.gid;
  tree::Options options;
  if (of != nullptr)
    options.admit = conda::admit_opened(*of, modes.mode);
  return tree::set_modes(tree, modes, options).map([](std::uint64_t) {});
}

Result<void> write_record(Context& context, const std::string& path, const conda::Generation& record) {
  const auto& files = context.system.files();
  const auto cut_off = files.read_if_exists(path + ".json"); // an older text is of one cut off
  return cut_off ? files.write_if(path + ".json", *cut_off, conda::format_generation(record)) : fail(cut_off.error());
}

Result<void> mend_copy(Context& context, const CopyToMend& copy) {
  const auto& path = copy.tree.path;
  conda::EnvironmentRequest request;
  request.path = path;
  request.prefix = copy.prefix;
  request.from = copy.from;
  request.mixed = true;
  auto state = read_environment(context, request);
  if (!state)
    return fail(state.error());
  if (state->device != copy.tree.device || state->inode != copy.tree.inode)
    return fail(ErrorCode::conflict, path + " is not the copy that was made: somebody else has put it there",
                "see who writes in the store, then run the command again");
  const bool runs_programs = copy.runs_programs && !state->others_write;
  if (!runs_programs) // what only names the old place in tracebacks stays: nobody would compile it again
    std::erase_if(state->compiled, [&](const plan::FileChange& change) {
      const auto source = conda::source_of(change.path);
      const bool stale = std::ranges::find(state->contents, source, &plan::FileChange::path) != state->contents.end();
      return !stale && std::ranges::any_of(state->found, [&](const conda::Found& found) {
        return found.kind == conda::Kind::stale_pyc && found.path == change.path && found.detail.starts_with('/');
      });
    });
  auto plan = conda::plan_repair(*state, false, runs_programs);
  for (const auto& step : plan.steps) {
    const auto done = plan::apply_action(step.action, context.system);
    if (!done && !std::holds_alternative<plan::RunTool>(step.action))
      return fail(done.error());
    if (!done)
      context.console.warning("not all of Python could be compiled again: " + done.error().message, "");
  }
  if (copy.in_part)
    return {};
  auto left = conda::diagnose_unrepaired(*state);
  std::erase_if(left, [](const Diagnosis& one) {
    return one.severity != Severity::error || one.code == "SF501" || one.code == "SF502" || // as the original is
           one.code == "SF510"; // close_tree() opens what is left, by all of its names
  });
  context.report(left);
  return left.empty() ? Result<void>{} : fail(ErrorCode::failed, "the copy is not sound", "nothing was changed");
}

} // namespace sharefs::cli

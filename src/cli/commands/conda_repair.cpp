#include "cli/commands/conda_repair.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_copy.hpp"
#include "cli/commands/conda_scratch.hpp"
#include "cli/tree_progress.hpp"
#include "conda/generation_plan.hpp"
#include "conda/share.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::cli {

namespace {

using conda::EnvironmentState;

/// Without what is mended by a copy of its own: files that not everybody can read, be they names of an older
/// generation.
EnvironmentState without_closed(const EnvironmentState& seen) {
  auto rest = seen;
  std::erase_if(rest.found, [](const conda::Found& found) { return found.kind == conda::Kind::closed; });
  return rest;
}

/// The tree `made` beside the present generation, mended. The bytes that are its own.
Result<std::uint64_t> make_repaired(Context& context, const conda::SharedEnvironment& environment,
                                    const EnvironmentState& seen, const std::string& made) {
  const auto& root = context.system.files().root();
  std::set<std::string> closed;
  for (const auto& found : seen.found)
    if (found.kind == conda::Kind::closed)
      closed.insert(found.path);
  tree::Options options;
  options.link_files = true;
  options.total_files = seen.files;
  options.total_bytes = seen.bytes;
  options.copy_instead = [&](const std::string& path, const struct stat& /*status*/) -> Result<bool> {
    return path.starts_with("conda-meta/") || closed.contains(path); // the mode is one of all names of a file
  };
  tree::Place place{.path = made, .root = root};
  {
    const tree::Place before{
        .path = environment.path(environment.current), .root = root, .device = seen.device, .inode = seen.inode};
    TreeProgress progress(context, "linking " + before.path);
    const auto linked = tree::copy(before, place, options, progress.on());
    if (!linked)
      return fail(linked.error());
    place.device = linked->device;
    place.inode = linked->inode;
    options.total_bytes = linked->bytes;
  }
  tree::Options opening;
  opening.admit = conda::admit_opened(seen, tree::Modes{}.mode);
  if (auto open = tree::set_modes(place, tree::Modes{}, opening); !open) // names in it are to be exchanged
    return fail(open.error());
  CopyToMend copy{place, environment.path(), seen.decision.replace, true};
  copy.in_part = true;
  if (auto mended = mend_copy(context, copy); !mended)
    return fail(mended.error());
  const auto store = context.system.entry({.path = environment.store, .follow = true});
  const bool protect = (*context.config())->conda->settings_of(environment.name).protect;
  if (auto shut = close_tree(place, store, protect, true, &seen); !shut)
    return fail(shut.error());
  return options.total_bytes;
}

} // namespace

std::optional<conda::GenerationPath> generation_at(Context& context, const std::string& path) {
  auto found = conda::in_generation(context.system.entry({.path = path, .follow = true}).resolved);
  return found && found->rest.empty() ? found : std::nullopt;
}

Diagnoses diagnose_unrepaired_generation(const EnvironmentState& seen) {
  return conda::diagnose_unrepaired(without_closed(seen));
}

Result<Executed> repair_generation(Context& context, const StoreName& where, const EnvironmentState& seen,
                                   const std::string& command) {
  auto environment = shared_environment(context, where);
  if (!environment)
    return fail(environment.error());
  const auto number = environment->next();
  if (number > conda::k_last_generation)
    return fail(ErrorCode::unsupported, "there are 9999 generations: no more numbers");
  const auto unfinished = fmt::format("new-{}.{}", conda::generation_name(number), random_letters(6));
  std::optional<ScratchTree> made;
  std::optional<sys::Lease> lease;
  conda::Generation record;
  Proposal proposal;
  proposal.nothing = "there is nothing that can be repaired";
  proposal.takes_long = true;
  const auto mends = conda::plan_repair(seen, true, false);
  if (const auto closed = seen.count(conda::Kind::closed); !mends.empty() || closed > 0) {
    proposal.plan = conda::plan_switch(*environment, number, unfinished);
    for (auto& step : proposal.plan.steps)
      step.group = where.name; // behind what makes it
    proposal.plan.notes = mends.notes;
    std::vector<std::string> mended;
    const auto add = [&](std::size_t number_of, std::string_view noun, std::string_view how) {
      if (number_of > 0)
        mended.push_back(fmt::format("{} {}", count_of(number_of, noun), how));
    };
    add(seen.contents.size() + seen.links.size(), "file", "with the right prefix or checksum");
    add(seen.compiled.size(), "file", "compiled again");
    add(closed, "path", "opened to those who may enter the environment");
    proposal.plan.notes.push_back(fmt::format("generation {} is made first, with {}; its other files are those of "
                                              "generation {}",
                                              number, join(mended, ", "), environment->current));
  }
  proposal.before_groups = [&]() -> Result<void> {
    auto taken = take_lease(context, *environment);
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
    const auto now = shared_environment(context, where);
    if (!now)
      return fail(now.error());
    if (now->current != environment->current || now->next() != number)
      return fail(ErrorCode::conflict, fmt::format("somebody else has changed `{}` meanwhile", where.name),
                  "run the command again");
    made.emplace(context, join_path(environment->root.path, unfinished));
    const auto own_bytes = make_repaired(context, *environment, seen, made->path());
    if (!own_bytes)
      return fail(own_bytes.error());
    auto begun = new_record(context, made->path(), command);
    if (!begun)
      return fail(begun.error());
    record = std::move(*begun);
    record.number = number;
    record.parent = environment->current;
    record.prefix = environment->path();
    record.files = seen.files;
    record.bytes = seen.bytes;
    record.own_bytes = *own_bytes;
    if (auto ours = lease->check(); !ours)
      return ours;
    return write_record(context, environment->path(number), record);
  };
  auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (executed && executed->applied() && executed->exit_code == 0 && made)
    note_verified(context, where.store, where.name, record, !has_errors(diagnose_unrepaired_generation(seen)));
  return executed;
}

} // namespace sharefs::cli

// sharefs conda update: a command changes a shared environment, and users see all of it or nothing.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_copy.hpp"
#include "cli/commands/conda_scratch.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/tree_progress.hpp"
#include "conda/generation_plan.hpp"
#include "conda/running.hpp"
#include "plan/apply.hpp"
#include "sys/layers/layered_command.hpp"
#include "sys/process/interrupt.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace sharefs::cli {

namespace {

constexpr mode_t k_write_bits = 0222;

/// What the update is made of.
struct Update {
  conda::SharedEnvironment environment;
  unsigned number = 0; ///< of the new generation
  Argv command;
  /// The record of the present generation; an empty one if there is none.
  [[nodiscard]] conda::Generation before() const {
    return environment.find(environment.current)->record.value_or(conda::Generation{});
  }
};

std::string unfinished_name(const Update& update) {
  return fmt::format("new-{}.{}", conda::generation_name(update.number), random_letters(6));
}

tree::Place place_of(Context& context, const std::string& path) {
  return {.path = path, .root = context.system.files().root()};
}

bool is_protected(Context& context, const Update& update) {
  return (*context.config())->conda->settings_of(update.environment.name).protect;
}

/// The command, as if the environment at `prefix` were active.
sys::TerminalCommand command_of(Context& context, const Update& update, const std::string& prefix) {
  return {update.command, conda::environment_for_changes(context.host.environment, prefix, update.environment.name),
          context.host.working_directory, context.flags.json};
}

Result<int> run_in_view(Context& context, const Update& update, const std::string& scratch) {
  const auto& files = context.system.files();
  sys::Layers layered;
  layered.parent = update.environment.store;
  layered.name = update.environment.name;
  layered.lower = update.environment.path(update.environment.current);
  layered.upper = join_path(scratch, "upper");
  layered.work = join_path(scratch, "work");
  for (const auto& mark : conda::protection_marks(update.environment.name, update.before().python))
    layered.removed.push_back(mark.path);
  layered.writable = {"conda-meta"};
  layered.user_namespace = context.host.gifts.user_namespace;
  for (const auto& directory : {layered.upper, layered.work})
    if (auto made = files.make_directories(directory, 0700); !made)
      return fail(made.error());
  return sys::run_layered(command_of(context, update, update.environment.path()), layered);
}

/// Without the size of all. `own_bytes`: no more than these are not the generation's before.
Result<conda::Generation> record_of_update(Context& context, const Update& update, const tree::Place& made,
                                           std::uint64_t own_bytes) {
  auto record = new_record(context, made.path, shell_join(update.command));
  if (!record)
    return record;
  record->number = update.number;
  record->parent = update.environment.current;
  record->prefix = update.environment.path();
  record->own_bytes = own_bytes;
  return record;
}

/// Where no such view can be had: in a full copy at a path of its own, which is given the stable prefix afterwards.
Result<int> run_in_copy(Context& context, const Update& update, tree::Place& made) {
  const auto& files = context.system.files();
  const auto before = place_of(context, update.environment.path(update.environment.current));
  tree::Options options;
  options.own = true;
  options.total_files = update.before().files;
  options.total_bytes = update.before().bytes;
  TreeProgress progress(context, "copying " + before.path);
  const auto copied = tree::copy(before, made, options, progress.on());
  if (!copied)
    return fail(copied.error());
  made.device = copied->device;
  made.inode = copied->inode;
  if (auto open = tree::set_modes(made, tree::Modes{}, {}); !open) // the command may write
    return fail(open.error());
  for (const auto& mark : conda::protection_marks(update.environment.name, update.before().python))
    if (auto removed = files.remove(join_path(made.path, mark.path));
        !removed && removed.error().code != ErrorCode::not_found)
      return fail(removed.error());
  return sys::run_in_terminal(command_of(context, update, made.path));
}

/// Gives what the command has left the modes of the store, and its group.
Result<void> close_left(Context& context, const Update& update, const std::string& path) {
  auto tree = place_of(context, path);
  const auto entry = context.system.entry({.path = path});
  tree.device = entry.device;
  tree.inode = entry.inode;
  const auto store = context.system.entry({.path = update.environment.store, .follow = true});
  return close_tree(tree, store, is_protected(context, update), true);
}

/// The tree `made` beside the present generation, whose files it shares.
Result<tree::CopyReport> link_before(Context& context, const Update& update, const std::string& made) {
  const auto before = place_of(context, update.environment.path(update.environment.current));
  tree::Options options;
  options.take_away = is_protected(context, update) ? k_write_bits : 0;
  options.link_files = true;
  options.copy_instead = [](const std::string& path, const struct stat& /*status*/) -> Result<bool> {
    return path.starts_with("conda-meta/"); // `history` is appended to
  };
  TreeProgress progress(context, "linking " + before.path);
  return tree::copy(before, place_of(context, made), options, progress.on());
}

/// What the command left in the copy, with the stable prefix and closed, becomes the tree `made`: what is as before is
/// the same file.
Result<conda::Generation> finish_copy(Context& context, const Update& update, const tree::Place& copy,
                                      const std::string& made) {
  if (auto mended = mend_copy(context, {copy, update.environment.path(), {copy.path}, true}); !mended)
    return fail(mended.error());
  if (auto closed = close_left(context, update, copy.path); !closed)
    return fail(closed.error());
  auto tree = place_of(context, made);
  const auto linked = link_before(context, update, made);
  if (!linked) { // the files are another user's, or the file system has no further names
    context.console.message("nothing is shared with the generation before: " + linked.error().message);
    if (auto removed = tree::remove(tree, {}); !removed)
      return fail(removed.error());
    if (auto renamed = plan::apply_action(plan::Rename{copy.path, made, std::nullopt}, context.system); !renamed)
      return fail(renamed.error());
    tree.device = copy.device;
    tree.inode = copy.inode;
    return record_of_update(context, update, tree, std::numeric_limits<std::uint64_t>::max());
  }
  tree.device = linked->device;
  tree.inode = linked->inode;
  tree::Options options;
  options.remove_others = true;
  TreeProgress progress(context, "copying what has changed");
  const auto changed = tree::copy(copy, tree, options, progress.on());
  return changed ? record_of_update(context, update, tree, linked->bytes + changed->bytes) : fail(changed.error());
}

/// The new tree beside the old one: what is the same is the same file.
Result<conda::Generation> harvest(Context& context, const Update& update, const std::string& upper,
                                  const std::string& made) {
  const auto linked = link_before(context, update, made);
  if (!linked)
    return fail(linked.error());
  tree::Options options;
  options.take_away = is_protected(context, update) ? k_write_bits : 0;
  options.layer = true;
  TreeProgress progress(context, "copying what has changed");
  auto tree = place_of(context, made); // by its number: whoever may write in the store could exchange the name
  tree.device = linked->device;
  tree.inode = linked->inode;
  const auto changed = tree::copy(place_of(context, upper), tree, options, progress.on());
  if (!changed)
    return fail(changed.error());
  auto record = record_of_update(context, update, tree, linked->bytes + changed->bytes);
  if (record) {
    record->files = static_cast<std::uint64_t>(linked->more_files + changed->more_files);
    record->bytes = static_cast<std::uint64_t>(linked->more_bytes + changed->more_bytes);
  }
  return record;
}

/// The marks that were out of sight for the command, into what it left.
Result<void> restore_protections(Context& context, const Update& update, const std::string& upper) {
  const auto& files = context.system.files();
  const auto left = conda::read_contents(context.system, upper);
  if (!left)
    return fail(left.error());
  const auto& name = update.environment.name;
  const auto before = conda::protection_marks(name, update.before().python);
  const auto after = conda::protection_marks(name, left->python.empty() ? update.before().python : left->python);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const auto text =
        files.read_if_exists(join_path(update.environment.path(update.environment.current), before[i].path));
    if (!text)
      return fail(text.error());
    if (!*text)
      continue;
    const auto path = join_path(upper, after[i].path);
    if (auto made = files.make_directories(parent_path(path)); !made)
      return made;
    const auto there = context.system.entry({.path = path}); // a whiteout
    if (auto removed = there.exists() ? files.remove(path) : Result<void>{}; !removed)
      return removed;
    if (auto written = files.write_if(path, std::nullopt, **text, 0444); !written)
      return written;
  }
  return {};
}

/// How large it is: what verify() has seen, what harvest() has counted, or a look at all of it.
Result<void> note_size(Context& context, const std::string& made, const std::optional<conda::EnvironmentState>& seen,
                       conda::Generation& record) {
  if (seen) {
    record.files = seen->files;
    record.bytes = seen->bytes;
  } else if (record.files == 0) {
    const auto measured = tree::measure(place_of(context, made), tree::Options{});
    if (!measured)
      return fail(measured.error());
    record.files = measured->files;
    record.bytes = measured->bytes;
  }
  record.own_bytes = std::min(record.own_bytes, record.bytes);
  return {};
}

/// Only what is worse than before stops the switch.
Result<conda::EnvironmentState> verify(Context& context, const Update& update, const std::string& made) {
  conda::EnvironmentRequest request;
  request.path = made;
  request.prefix = update.environment.path();
  request.reading = conda::Reading::own;
  auto state = read_environment(context, request);
  if (!state)
    return state;
  auto found = conda::diagnose(*state);
  std::erase_if(found, [](const Diagnosis& one) { return one.severity != Severity::error; });
  context.report(found);
  if (!found.empty())
    return fail(ErrorCode::failed, "the environment that the command left is not sound",
                "nothing was changed; `--no-verify` takes it as it is");
  return state;
}

Result<Update> prepare_update(Context& context, const Arguments& arguments, const StoreName& where) {
  auto environment = shared_environment(context, where);
  if (!environment)
    return fail(environment.error());
  Update update{std::move(*environment), 0, *arguments.rest};
  update.number = update.environment.next();
  return update.number > conda::k_last_generation
             ? Result<Update>(fail(ErrorCode::unsupported, "there are 9999 generations: no more numbers"))
             : update;
}

void show_changes(Context& context, const std::vector<conda::PackageChange>& changes) {
  for (const auto& [name, before, after] : changes)
    context.console.message(fmt::format("  {} {}: {} -> {}",
                                        before.empty()  ? "+"
                                        : after.empty() ? "-"
                                                        : "~",
                                        name, before.empty() ? "none" : before, after.empty() ? "none" : after));
}

Result<int> show_intent(Context& context, const Arguments& arguments, const StoreName& where) {
  const auto update = prepare_update(context, arguments, where);
  if (!update)
    return fail(update.error());
  context.console.message(fmt::format("`{}` would run in a copy of generation {} of `{}`, seen at {}; if it succeeds, "
                                      "what it left becomes generation {}",
                                      shell_join(update->command), update->environment.current, where.name,
                                      update->environment.path(), update->number));
  return context.flags.check ? k_exit_pending : k_exit_ok;
}

/// Root works as the owner of a store, and where it is root's own in what nobody else could have put there.
Result<void> check_programs(Context& context, const Update& update) {
  const auto programs = join_path(update.environment.path(update.environment.current), "bin");
  if (context.system.identity().uid != 0 || !conda::others_could_exchange(context.system, programs))
    return {};
  return fail(ErrorCode::permission,
              fmt::format("{} is root's, and others may write there: the command would run their programs as root",
                          update.environment.store),
              fmt::format("give it to who looks after it, as whom root then works: `chown -R USER {}`",
                          shell_quote(update.environment.store)));
}

/// That it is an environment still. `whole`: it is all in `left`; or else what is not there is as it was.
Result<void> check_left(Context& context, const Update& update, const std::string& left, bool whole) {
  for (const auto* name : {"conda-meta", "lib"}) {
    const auto entry = context.system.entry({.path = join_path(left, name)});
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
    const bool was_there =
        context.system.entry({.path = join_path(update.environment.path(update.environment.current), name)}).exists();
    if (was_there && entry.kind != sys::EntryKind::directory && (whole || entry.exists()))
      return fail(ErrorCode::failed, fmt::format("`{}` has deleted {} of the environment: nothing was changed",
                                                 shell_join(update.command), name));
  }
  return {};
}

/// What the command makes of the environment, at the path `made`. nullopt: it failed, and that was said.
Result<std::optional<conda::Generation>> make_generation(Context& context, const Update& update,
                                                         const std::string& scratch, const std::string& made) {
  std::optional<ScratchTree> copy_tree;
  tree::Place copy;
  auto code = run_in_view(context, update, scratch);
  const bool in_copy = !code && code.error().code == ErrorCode::unsupported;
  if (in_copy) {
    context.console.message(code.error().message + ": the command works in a full copy, which is relocated afterwards");
    copy_tree.emplace(context, join_path(update.environment.root.path, unfinished_name(update)));
    copy = place_of(context, copy_tree->path());
    code = run_in_copy(context, update, copy);
  }
  if (!code)
    return fail(code.error());
  if (*code != 0) {
    context.console.error(
        {ErrorCode::failed,
         fmt::format("`{}` ended with exit code {}: nothing was changed", shell_join(update.command), *code), "", ""});
    return std::nullopt;
  }
  const auto left = in_copy ? copy.path : join_path(scratch, "upper");
  if (auto still = check_left(context, update, left, in_copy); !still)
    return fail(still.error());
  if (auto restored = restore_protections(context, update, left); !restored)
    return fail(restored.error());
  if (!in_copy) // as whoever works with it needs them, whatever the umask of the command was
    if (auto closed = close_left(context, update, left); !closed)
      return fail(closed.error());
  auto record = in_copy ? finish_copy(context, update, copy, made) : harvest(context, update, left, made);
  return record ? Result<std::optional<conda::Generation>>(std::move(*record)) : fail(record.error());
}

/// PATH for the command in a worker: the system's, after the directory in which root's own would find the command.
std::vector<std::string> path_for(Context& context, const Argv& command) {
  sys::EntryRequest request;
  for (const auto& directory : split(context.environment("PATH").value_or(""), ':'))
    if (directory.starts_with('/') && command.front().find('/') == std::string::npos)
      request.queries.push_back({.path = join_path(directory, command.front()), .follow = true});
  for (const auto& entry : context.system.entries(request))
    if (entry.kind == sys::EntryKind::file && (entry.mode & 0111U) != 0)
      return {"PATH=" + parent_path(entry.path) + ":" + sys::k_system_path};
  return {};
}

Result<int> run_update(Context& context, const Arguments& arguments) {
  const auto where = store_name(context, arguments.positional.front());
  if (!where)
    return fail(where.error());
  const bool looks_only = context.flags.dry_run || context.flags.check;
  if (!looks_only && !context.flags.yes && (!context.console.options().in_terminal || context.flags.json))
    return fail(ErrorCode::usage, "there is no terminal to ask for consent", "add --yes to go ahead");
  if (auto done =
          work_as_owner(context, where->store, {.environment = path_for(context, *arguments.rest), .makes_view = true});
      !done || *done)
    return done.map([](const auto& code) { return *code; });
  if (looks_only)
    return show_intent(context, arguments, *where);
  const auto first = shared_environment(context, *where);
  if (!first)
    return fail(first.error());
  sys::install_interrupt_handlers();
  auto lease = take_lease(context, *first);
  if (!lease)
    return fail(lease.error());
  const auto update = prepare_update(context, arguments, *where); // as the one before us has left it
  if (!update)
    return fail(update.error());
  if (auto ours = check_programs(context, *update); !ours)
    return fail(ours.error());

  const auto above = normalize_path(arguments.value("scratch").value_or("/var/tmp"), context.host.working_directory);
  remove_old_scratch(context, above);
  remove_unfinished(context, update->environment);
  const ScratchTree scratch(context, join_path(above, scratch_name(context, update->number)));
  const auto unfinished = unfinished_name(*update);
  const ScratchTree made(context, join_path(update->environment.root.path, unfinished)); // by this name

  const auto not_made = [](Error error) {
    if (error.code == ErrorCode::interrupted)
      error.message = "interrupted: nothing was changed";
    return fail(std::move(error));
  };
  auto record = make_generation(context, *update, scratch.path(), made.path());
  if (!record)
    return not_made(record.error());
  if (!*record)
    return sys::interrupted() ? k_exit_interrupted : k_exit_failed;
  (*record)->message = arguments.value("message").value_or("");
  std::optional<conda::EnvironmentState> seen;
  if (!arguments.flag("no-verify")) {
    auto sound = verify(context, *update, made.path());
    if (!sound)
      return not_made(sound.error());
    seen = std::move(*sound);
  }
  if (auto noted = note_size(context, made.path(), seen, **record); !noted)
    return not_made(noted.error());
  const auto changes = conda::package_changes(update->before().packages, (*record)->packages);
  context.console.message(changes.empty() ? std::string("the packages are the same as before") : "packages:");
  show_changes(context, changes);
  Proposal proposal{conda::plan_switch(update->environment, update->number, unfinished), ""};
  proposal.before_groups = [&]() -> Result<void> {
    auto ours = lease->check();
    return ours ? write_record(context, update->environment.path(update->number), **record) : ours;
  };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  const bool switched = executed && executed->applied() && !executed->stopped();
  if (switched && seen &&
      is_verified(context, where->store, where->name, update->before())) // of which the other files are
    note_verified(context, where->store, where->name, **record, true);
  return executed.map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_update_command{
    .name = "conda update",
    .summary = "Change a shared environment by a command, all of it or nothing",
    .description =
        "Runs COMMAND (pip, conda, mamba, a script) in a view of the environment at its own path that only COMMAND "
        "sees. If it succeeds, and the result is sound, that becomes a new generation, and users see it from one "
        "moment "
        "to the next; if it fails nothing has changed. What has not changed is shared with the generation before. What "
        "runs by `sharefs conda run` keeps its generation. Two updates at once: the second waits (--wait).",
    .example = "sharefs conda update llm_train -- pip install 'torch==2.4'\n"
               "sharefs conda update llm_train --message 'for the paper' -- conda install -y numpy\n"
               "sharefs conda rollback llm_train        # back to the one before",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1},
    .options = {{.names = "--message", .value = "TEXT", .help = "what for; `conda generations` shows it"},
                {.names = "--no-verify", .help = "do not compare the result with conda's records"},
                {.names = "--scratch",
                 .value = "DIR",
                 .help = "directory on this host's own disk for what the command writes",
                 .fallback = "/var/tmp"}},
    .takes_command = true,
    .run = run_update,
};

} // namespace sharefs::cli

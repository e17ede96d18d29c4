// sharefs conda share: a user's environment becomes a shared one.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_copy.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_share_source.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/tree_progress.hpp"
#include "conda/share.hpp"
#include "plan/apply.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using conda::ShareStep;

/// All of one `conda share`.
struct Share {
  StoreName where;
  sys::Entry store; ///< or, while there is none, the directory in which it is made
  bool makes_store = false;
  std::optional<sys::User> seen_by = {}; ///< as whom root has looked there
  std::string command;                   ///< of the record
  conda::ShareRequest request;
  conda::EnvironmentState state;      ///< of the source, or of what is adopted
  std::uint64_t bytes_per_second = 0; ///< --limit
  bool protect = true;
  bool runs_programs = false; ///< of the source: whoever works owns them
  std::optional<sys::Lease> lease;
};

/// Whoever can do it does it: root where root may read and write (nullopt), or else a worker of the owner, whose exit
/// code it is.
Result<std::optional<int>> choose_worker(Context& context, const Share& share, bool named) {
  const auto self = context.system.identity();
  const auto& source = share.request.source;
  std::vector<std::optional<sys::User>> choices;
  std::vector<std::string> problems;
  const bool is_roots = share.store.uid == 0 && (!share.makes_store || source.actor.user.uid == 0);
  if (self.uid != 0 || is_roots)
    choices.emplace_back(std::nullopt);
  else if (share.makes_store)
    problems.push_back(fmt::format("the store {} is made, and is to belong to a user", share.where.store));
  else
    problems.push_back(fmt::format("{} belongs to another user than root, who does not work in it", share.where.store));
  if (self.uid == 0 && source.actor.user.uid != 0)
    choices.emplace_back(source.actor.user);
  for (const auto& choice : choices) {
    auto worker = conda::probe_worker(context.system, source, share.store.path, choice);
    if (worker.no_environment)
      return fail(ErrorCode::not_found,
                  source.entry.path + " is no conda environment: it has no directory `conda-meta`",
                  "`conda env list` knows where environments lie");
    if (!worker.problem.empty()) {
      problems.push_back(std::move(worker.problem));
      continue;
    }
    if (!choice)
      return std::nullopt;
    WorkerTask task{.user = *choice, .why = join(problems, "; ")};
    if (!named)
      task.more_words = {"--from", source.path};
    return work_as(context, std::move(task)).map([](int code) { return std::optional(code); });
  }
  context.report(
      {{Severity::error, "SF526", share.where.store, "nobody can do it: " + join(problems, "; "),
        fmt::format("let the owner of {} write in the store (a group, `chmod g+ws`), or run it where root may "
                    "do both, for example on the server",
                    source.path),
        ""}});
  return fail(ErrorCode::permission, fmt::format("`{}` cannot be shared from here", share.where.name));
}

Result<conda::Generation> record_of(Context& context, const Share& share, const std::string& path) {
  auto record = new_record(context, path, share.command);
  if (!record)
    return record;
  record->number = share.request.shared.next();
  record->prefix = join_path(share.where.store, share.where.name);
  record->files = share.state.files;
  record->bytes = record->own_bytes = share.state.bytes;
  return record;
}

/// Whose .generations and .generations/ENV are, now.
Result<void> check_places(Context& context, const Share& share) {
  const auto root = conda::generations_path(share.where.store, share.where.name);
  const auto found =
      conda::diagnose_places(share.store, context.system.entries({{{.path = parent_path(root)}, {.path = root}}}),
                             context.system.identity().uid);
  context.report(found);
  return found.empty() ? Result<void>{}
                       : fail(ErrorCode::permission, fmt::format("`{}` is not shared there", share.where.name));
}

/// .generations/ENV/uses, and the lease in it: no part of the plan, because nothing else may happen before it is held.
Result<void> take_place(Context& context, Share& share) {
  const auto mode = conda::root_mode(share.store.mode);
  const auto root = conda::generations_path(share.where.store, share.where.name);
  if (share.makes_store) { // as open as the directory that it lies in, whose group and ACLs it inherits
    const auto store = plan::make_directory(share.where.store, share.store.mode & 01777U);
    if (auto made = plan::apply_action(store, context.system); !made)
      return fail(made.error());
    share.store = context.system.entry({.path = share.where.store, .follow = true});
  }
  auto parent = sys::identity_of(share.store);
  for (const auto& [path, its_mode] :
       {std::pair(parent_path(root), mode | (share.store.mode & 01000U)),
        {root, mode},
        {join_path(root, "uses"), conda::uses_mode(share.store.mode)}}) { // the group is inherited
    const auto make = plan::make_directory(path, its_mode & 01777U, std::nullopt, false, parent);
    if (auto made = plan::apply_action(make, context.system); !made)
      return fail(made.error());
    parent = {};
  }
  if (auto ours = check_places(context, share); !ours)
    return ours;
  auto lease = take_lease(context, share.request.shared);
  if (!lease)
    return fail(lease.error());
  share.lease.emplace(std::move(*lease));
  const auto now = conda::probe_environment(context.system, share.where.store, share.where.name);
  if (!now)
    return fail(now.error());
  return now->generations.size() == share.request.shared.generations.size() &&
                 now->current == share.request.shared.current
             ? Result<void>{}
             : fail(ErrorCode::conflict, fmt::format("somebody else has changed `{}` meanwhile", share.where.name),
                    "run the command again");
}

Result<void> write_marks(Context& context, const std::string& tree, const std::string& name,
                         const std::string& python) {
  for (const auto& [path, text] : conda::protection_marks(name, python))
    if (auto written = context.system.files().write_if(join_path(tree, path), std::nullopt, text, 0644);
        !written && written.error().code != ErrorCode::conflict && written.error().code != ErrorCode::not_found)
      return written;
  return {};
}

/// The directory at `path`, if it is a copy of the source that we have begun; what others have put there is none.
std::optional<tree::Place> copy_at(Context& context, const Share& share, const std::string& path) {
  const auto entries = context.system.entries({.queries = {{.path = path, .links = sys::Links::none},
                                                           {.path = join_path(path, conda::k_copy_mark),
                                                            .read_bytes = conda::k_largest_note,
                                                            .links = sys::Links::none}}});
  if (!conda::is_copy_of(share.request.source, entries[0], entries[1], context.system.identity().uid))
    return std::nullopt;
  return tree::Place{
      .path = path, .root = context.system.files().root(), .device = entries[0].device, .inode = entries[0].inode};
}

/// Goes on with a copy, or begins one, in a directory that nobody else enters.
Result<tree::Place> begin_copy(Context& context, const Share& share) {
  const auto path = join_path(conda::generations_path(share.where.store, share.where.name), share.request.unfinished);
  if (auto begun = copy_at(context, share, path))
    return std::move(*begun);
  if (auto made = plan::apply_action(plan::make_directory(path, 0700), context.system); !made)
    return fail(made.error());
  if (auto noted = context.system.files().write_if(join_path(path, conda::k_copy_mark), std::nullopt,
                                                   conda::copy_mark(share.request.source), 0600);
      !noted)
    return fail(noted.error());
  auto begun = copy_at(context, share, path);
  return begun ? Result<tree::Place>(std::move(*begun))
               : fail(ErrorCode::conflict, path + " is not the copy that was begun: somebody else has put it there",
                      "see who writes in the store, then run the command again");
}

/// STORE/.generations/ENV/new-0001.XXXXXX as generation 1 is to be.
Result<void> make_copy(Context& context, const Share& share) {
  const auto& source = share.request.source;
  const auto begun = begin_copy(context, share);
  if (!begun)
    return fail(begun.error());
  const auto& place = *begun;
  const auto& tree = place.path;
  tree::Options options;
  options.own = true;
  options.admit = conda::admit_copied(share.state);
  options.take_away = 0022;     // nobody else writes in it while it is made
  options.remove_others = true; // what an earlier run has left
  options.leave = conda::k_copy_mark;
  options.bytes_per_second = share.bytes_per_second;
  options.total_files = share.state.files;
  options.total_bytes = share.state.bytes;
  TreeProgress progress(context, "copying " + source.entry.path);
  const auto copied = tree::copy({.path = source.entry.path,
                                  .root = context.system.files().root(),
                                  .beneath = source.actor.beneath,
                                  .device = source.entry.device,
                                  .inode = source.entry.inode},
                                 place, options, progress.on());
  if (!copied)
    return fail(copied.error());
  context.envelope.fields["copy"] = {{"files", copied->files}, {"kept", copied->kept}};
  CopyToMend copy{place, join_path(share.where.store, share.where.name), share.state.decision.replace,
                  share.runs_programs};
  if (std::ranges::find(copy.from, source.path) == copy.from.end())
    copy.from.push_back(source.path);
  if (auto mended = mend_copy(context, copy); !mended)
    return mended;
  if (share.protect)
    if (auto marked = write_marks(context, tree, share.where.name, share.request.record.python); !marked)
      return marked;
  return close_tree(place, share.store, share.protect, true);
}

Result<Share> prepare(Context& context, const Arguments& arguments) {
  const auto asked = copy_request(context, arguments);
  if (!asked)
    return fail(asked.error());
  Share share;
  share.where = asked->where;
  share.bytes_per_second = asked->bytes_per_second;
  share.protect = asked->settings.protect;
  const auto* where = &share.where;
  if (auto sound = conda::check_prefix(join_path(where->store, where->name)); !sound)
    return fail(sound.error());
  const auto seen = see_store(context, where->store, false);
  if (!seen)
    return fail(seen.error());
  sys::EntryRequest request{
      .queries = {{.path = where->store, .follow = true}, {.path = parent_path(where->store), .follow = true}}};
  request.as = share.seen_by = seen->by;
  const auto found = context.system.entries(request);
  share.makes_store = found[0].kind == sys::EntryKind::missing && found[1].kind == sys::EntryKind::directory;
  share.store = share.makes_store ? found[1] : found[0];
  if (auto mounted = check_share(context, where->store); !mounted) // never on the bare mount point
    return fail(mounted.error());
  if (share.store.kind != sys::EntryKind::directory)
    return fail(share.store.kind == sys::EntryKind::unknown
                    ? share.store.error()
                    : Error{ErrorCode::not_found, fmt::format("there is no directory {}, the store", where->store),
                            "correct `conda.store` in sharefs.yaml, or make the directory that it lies in", ""});
  return share;
}

int refuse(Context& context) {
  context.console.message("nothing was changed");
  return k_exit_failed;
}

Result<void> protect_adopted(Context& context, const Share& share, unsigned number, const std::string& python) {
  const auto tree = share.request.shared.path(number);
  if (!share.protect)
    return {};
  if (auto marked = write_marks(context, tree, share.where.name, python); !marked)
    return marked;
  const auto entry = context.system.entry({.path = tree, .links = sys::Links::none});
  auto adopted = share.state;
  if (adopted.inode == 0) { // it was adopted before
    adopted.inode = entry.inode;
    adopted.uid = entry.uid;
    adopted.mode = entry.mode;
  }
  adopted.path = tree;
  return close_tree(
      {.path = tree, .root = context.system.files().root(), .device = entry.device, .inode = adopted.inode},
      share.store, true, false, &adopted);
}

/// The copy was compared, but it has what was wrong with the original before.
void note_shared(Context& context, const Share& share, const Result<Executed>& executed) {
  if (executed && executed->applied() && executed->exit_code == k_exit_ok && share.request.record.number != 0)
    note_verified(context, share.where.store, share.where.name, share.request.record,
                  !has_errors(conda::diagnose_unrepaired(share.state)));
}

/// A directory that was moved into the store by hand.
Result<int> run_adopt(Context& context, Share& share) {
  if (auto done = work_as_owner(context, share.where.store); !done || *done)
    return done.map([](const auto& code) { return *code; });
  if (auto ours = check_places(context, share); !ours)
    return fail(ours.error());
  auto shared = conda::probe_environment(context.system, share.where.store, share.where.name);
  if (!shared)
    return fail(shared.error());
  share.request.shared = std::move(*shared);
  share.request.now = context.system.now();
  share.command = shell_join({"sharefs", "conda", "share", share.where.name, "--adopt"});
  const auto target = share.request.shared.path();
  const auto* first = share.request.shared.find(std::max(share.request.shared.current, 1U));
  if (first != nullptr && first->record && first->record->command == share.command) {
    context.console.message(
        fmt::format("{} is generation {} of a shared environment already", target, share.request.shared.current));
    if (context.flags.dry_run || context.flags.check)
      return k_exit_ok;
    return protect_adopted(context, share, first->number, first->record->python).map([] { return k_exit_ok; });
  }
  if (share.request.shared.entry.kind != sys::EntryKind::directory || !share.request.shared.generations.empty())
    return fail(ErrorCode::conflict, fmt::format("{} is no plain directory that could be adopted", target),
                fmt::format("`sharefs conda share {}` moves an environment of a user to the store", share.where.name));
  auto state = read_environment(context, {.path = target, .prefix = target});
  if (!state)
    return fail(state.error());
  share.state = std::move(*state);
  conda::Preflight facts;
  facts.state = share.state;
  const auto found = conda::preflight(facts);
  context.report(found);
  if (has_errors(found))
    return refuse(context);
  auto record = record_of(context, share, target);
  if (!record)
    return fail(record.error());
  share.request.record = std::move(*record);
  Proposal proposal;
  proposal.plan = conda::plan_adopt(share.request, share.state, true);
  if (share.protect)
    proposal.plan.notes.emplace_back("at the end the write permissions are taken away, which `sharefs undo` leaves so");
  proposal.before_groups = [&] { return take_place(context, share); };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (!executed || !executed->applied() || executed->exit_code != k_exit_ok)
    return executed.map(&Executed::exit_code);
  note_shared(context, share, executed);
  return protect_adopted(context, share, share.request.record.number, share.request.record.python).map([] {
    return k_exit_ok;
  });
}

Result<int> run_share(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "environments are shared on a running system: --root is not possible here");
  auto share = prepare(context, arguments);
  if (!share)
    return fail(share.error());
  sys::install_interrupt_handlers();
  const auto& where = share->where;
  const auto target = join_path(where.store, where.name);
  const auto from = arguments.value("from");
  if (from && arguments.flag("adopt"))
    return fail(ErrorCode::usage, "`--adopt` and `--from` exclude each other",
                "--adopt is for a directory that lies in the store already");
  if (arguments.flag("adopt"))
    return run_adopt(context, *share);
  auto source = from ? source_at(context, *from, target) : find_source(context, where, target);
  if (!source)
    return fail(source.error());
  share->request.source = std::move(*source);
  share->command = conda::share_command(where.name, share->request.source.path);
  if (share->request.source.entry.kind == sys::EntryKind::symlink && share->request.source.entry.link_target != target)
    return fail(ErrorCode::unsupported,
                fmt::format("{} is a link to {}", share->request.source.path, share->request.source.entry.link_target),
                "name the directory itself by --from");
  if (share->request.source.entry.kind != sys::EntryKind::symlink)
    if (auto done = choose_worker(context, *share, from.has_value()); !done || *done)
      return done.map([](const auto& code) { return *code; });
  if (share->seen_by) // it is shared already, and root may not see what there is left to do
    return work_as(context, {.user = share->request.source.actor.user,
                             .why = fmt::format("root of this host may not read {} (root_squash)", where.store),
                             .more_words = from ? Argv{} : Argv{"--from", share->request.source.path}});
  if (auto ours = check_places(context, *share); !ours)
    return fail(ours.error());

  auto shared = conda::probe_environment(context.system, where.store, where.name);
  if (!shared)
    return fail(shared.error());
  share->request.shared = std::move(*shared);
  const auto step = conda::next_step(share->request.shared, share->request.source);
  if (!step)
    return fail(step.error());
  share->request.step = *step;
  share->request.now = context.system.now();
  if (*step == ShareStep::nothing) {
    context.console.message(fmt::format("{} is a link to the shared environment already", share->request.source.path));
    return k_exit_ok;
  }
  const auto& path = share->request.source.entry.path;
  if (*step == ShareStep::copy) {
    conda::EnvironmentRequest request;
    request.path = path;
    request.prefix = target;
    auto state = read_environment(context, request);
    if (!state)
      return fail(state.error());
    share->state = std::move(*state);
    auto facts = conda::probe_preflight(context.system, share->request.source, where.store,
                                        context.environment("CONDA_PREFIX").value_or(""));
    facts.state = share->state;
    share->request.unfinished = fmt::format("new-{}.{}", conda::generation_name(1), random_letters(6));
    for (const auto& name : share->request.shared.unfinished)
      if (const auto begun = copy_at(context, *share, join_path(share->request.shared.root.path, name))) {
        share->request.unfinished = name;
        if (const auto measured = tree::measure(*begun, {}))
          facts.copied = *measured;
      }
    const auto found = conda::preflight(facts);
    context.report(found);
    if (has_errors(found))
      return refuse(context);
    auto record = record_of(context, *share, path);
    if (!record)
      return fail(record.error());
    share->request.record = std::move(*record);
    const auto self = context.system.identity();
    share->runs_programs = self.uid == share->request.source.entry.uid && !share->state.others_write;
  }
  Proposal proposal;
  proposal.plan = conda::plan_share(share->request);
  if (share->makes_store)
    proposal.plan.notes.insert(proposal.plan.notes.begin(),
                               fmt::format("the store {} is made, as open as {} (mode {}), and belongs to `{}`",
                                           where.store, share->store.path, format_mode(share->store.mode & 01777U),
                                           context.system.identity().user));
  proposal.takes_long = true;
  proposal.before_groups = [&]() -> Result<void> {
    if (auto taken = take_place(context, *share); !taken)
      return taken;
    if (share->request.step == ShareStep::copy)
      if (auto copied = make_copy(context, *share); !copied)
        return copied;
    return share->lease->check();
  };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  note_shared(context, *share, executed);
  return executed.map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_share_command{
    .name = "conda share",
    .summary = "Move an environment of a user into the store, for all",
    .description =
        "Copies the environment into the store as generation 1, compares the copy, gives it the prefix STORE/ENV, and "
        "exchanges the user's directory for a link to it in one moment; the original stays beside it until `sharefs "
        "conda purge`. What would not work for others is found before: editable installs, links into a package cache, "
        "a base or active environment, a full store. What was cut off goes on when run again; `sharefs undo` brings "
        "the directory back.",
    .example = "sharefs conda share llm_train\n"
               "sharefs conda share llm_train --from /home/alice/miniconda3/envs/llm --dry-run",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "name in the store, and of the environment in a home", .min = 1, .max = 1},
    .options = {{.names = "--from",
                 .value = "PATH",
                 .help = "directory of the environment, if it is not in a home of `conda.homes`"},
                k_limit_option,
                {.names = "--adopt", .help = "the directory STORE/ENV, moved there by hand, becomes generation 1"}},
    .run = run_share,
};

} // namespace sharefs::cli

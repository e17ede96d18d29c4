// sharefs conda stage ENV: the present generation on this host's own disk.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/tree_progress.hpp"
#include "conda/staged.hpp"
#include "plan/apply.hpp"
#include "plan/host_lock.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::uint64_t k_spare_bytes = 256U << 20U;
constexpr std::uint64_t k_spare_files = 1000;

/// All of one `conda stage`.
struct Staging {
  CopyRequest request;
  bool removes = false;
  conda::StageFormat format = conda::StageFormat::directory;
  conda::SharedEnvironment environment;
  std::string store, source; ///< without links; `source` is the present generation
  conda::StagedCopies copies;
  conda::StageAccess access;
  conda::StagePlan made;

  [[nodiscard]] unsigned number() const { return environment.current; }
  [[nodiscard]] std::string path() const { return join_path(copies.directory.path, conda::generation_name(number())); }
  [[nodiscard]] conda::Generation record() const {
    const auto* one = environment.find(number());
    return one == nullptr ? conda::Generation{} : one->record.value_or(conda::Generation{});
  }
};

tree::Place staged_place(Context& context, const std::string& path) {
  return {.path = path, .root = context.system.files().root(), .guarded = true};
}

/// The form that is asked for, or why it is another.
Result<conda::StageFormat> format_of(Context& context, const Arguments& arguments) {
  const auto word = arguments.value("format").value_or((*context.config())->conda->stage_format);
  if (word != "directory" && word != "squashfs")
    return fail(ErrorCode::usage, fmt::format("--format: `{}` is no form of a copy", word), "directory or squashfs");
  if (word == "directory" || arguments.flag("remove"))
    return conda::StageFormat::directory;
  if (arguments.value("limit"))
    return fail(ErrorCode::usage, "`--limit` goes with `--format directory`: what makes an image knows no limit");
  const auto why = conda::why_no_images(context.system);
  if (why.empty())
    return conda::StageFormat::squashfs;
  context.console.message("a directory, not an image: " + why);
  return conda::StageFormat::directory;
}

/// Whose files the new copy shares: only root may add to directories without write bits. nullptr: nobody's.
const conda::StagedCopy* older_copy(Context& context, const Staging& staging) {
  const auto& copies = staging.copies.copies;
  const auto older = std::ranges::find_if(copies.rbegin(), copies.rend(), [](const conda::StagedCopy& copy) {
    return !copy.mounted() && copy.tree.kind == sys::EntryKind::directory;
  });
  const bool shares = older != copies.rend() && older->number != staging.number();
  return shares && context.system.identity().uid == 0 ? &*older : nullptr;
}

/// What is to be written: by the records that an older copy has not, or without what an earlier run has copied.
tree::Measured to_copy(Context& context, const Staging& staging) {
  const auto record = staging.record();
  tree::Measured rest{.files = record.files, .bytes = record.bytes};
  if (staging.made.makes == conda::StageFormat::squashfs)
    return {.files = 1, .bytes = record.bytes};
  if (const auto* older = older_copy(context, staging)) {
    std::uint64_t own = 0;
    auto number = staging.number();
    for (const auto* one = staging.environment.find(number); number > older->number && one != nullptr && one->record;
         one = staging.environment.find(number)) {
      own += one->record->own_bytes;
      number = std::min(number - 1, one->record->parent);
    }
    if (number == older->number)
      rest = {.bytes = std::min(own, record.bytes)};
  } else if (const auto* begun = staging.copies.find(staging.number()); begun != nullptr && begun->tree.exists()) {
    if (const auto there = tree::measure(staged_place(context, staging.path()), {})) {
      rest.files -= std::min(rest.files, there->files);
      rest.bytes -= std::min(rest.bytes, there->bytes);
    }
  }
  return rest;
}

/// Why the disk would not hold it.
Result<void> check_room(Context& context, const Staging& staging) {
  const auto entry = context.system.entry({.path = staging.copies.directory.ancestor, .follow = true, .space = true});
  if (!entry.space)
    return {};
  const auto& space = *entry.space;
  const auto rest = to_copy(context, staging);
  std::string lacks;
  if (space.free_bytes < rest.bytes + k_spare_bytes)
    lacks = fmt::format("{}; {} are to be copied, and {} stay free for others", format_bytes(space.free_bytes),
                        format_bytes(rest.bytes), format_bytes(k_spare_bytes));
  else if (space.files != 0 && space.free_files < rest.files + k_spare_files)
    lacks = fmt::format("{} (inodes); {} are to be copied, and {} inodes stay free for others",
                        count_of(space.free_files, "file"), count_of(rest.files, "file"), k_spare_files);
  if (lacks.empty())
    return {};
  return fail(ErrorCode::failed, fmt::format("{} has room for {}: commands run from the share", entry.mount, lacks),
              "free some, or set `conda.stage` in sharefs.yaml to a larger disk");
}

/// For copies, where nobody else could exchange them. It stays: later copies lie there, too.
Result<void> make_directory(Context& context, const Staging& staging) {
  const auto& path = staging.copies.directory.path;
  if (auto made = context.system.files().make_directories(path, 0755); !made) {
    auto error = made.error();
    const auto& stage = staging.request.settings.stage;
    if (error.code == ErrorCode::permission)
      error.hint =
          fmt::format("root makes copies for all users: `sudo sharefs conda stage {}`; or lets each make an own "
                      "one: `sudo install -d -m 1777 {}`",
                      staging.request.where.name, shell_quote(stage));
    return fail(std::move(error));
  }
  const auto entry = context.system.entry({.path = path, .links = sys::Links::trusted, .guarded = true});
  if (entry.kind != sys::EntryKind::directory)
    return fail(entry.error());
  const auto admitted = conda::admit(entry, staging.access);
  return admitted ? plan::apply_action(*admitted, context.system).map([](plan::Outcome) {}) : Result<void>{};
}

Result<void> copy_generation(Context& context, const Staging& staging) {
  const auto record = staging.record();
  const tree::Place from{.path = staging.source, .root = context.system.files().root()};
  const auto to = staged_place(context, staging.path());
  tree::Options options;
  TreeProgress progress(context, "copying " + staging.source);
  if (const auto* older = older_copy(context, staging)) { // what it has is the same file
    options.link_files = true;
    if (auto linked = tree::copy(staged_place(context, older->tree.path), to, options, progress.on()); !linked)
      return fail(linked.error());
    options.link_files = false;
  }
  options.remove_others = true;
  options.bytes_per_second = staging.request.bytes_per_second;
  options.total_files = record.files;
  options.total_bytes = record.bytes;
  const auto copied = tree::copy(from, to, options, progress.on());
  if (!copied)
    return fail(copied.error());
  context.console.message(fmt::format("{}: {} copied ({}), {} there already", staging.path(),
                                      count_of(copied->files, "file"), format_bytes(copied->bytes), copied->kept));
  return {};
}

Result<std::vector<tree::HashedFile>> hash(Context& context, const tree::Place& place, bool refuse_acls = false) {
  TreeProgress progress(context, "reading " + place.path);
  tree::Options options;
  options.refuse_acls = refuse_acls;
  return tree::hash(place, options, progress.on());
}

/// What an image holds, by a mount that is there for this look only.
Result<std::vector<tree::HashedFile>> hash_image(Context& context, const std::string& image, const std::string& path) {
  const auto apply = [&](const plan::Action& action) {
    return plan::apply_action(action, context.system).map([](plan::Outcome) {});
  };
  if (auto made = apply(plan::make_directory(path, 0755, std::nullopt, true)); !made)
    return fail(made.error());
  if (auto mounted = apply(conda::image_mount(image, path)); !mounted)
    return fail(mounted.error());
  auto found = hash(context, staged_place(context, path));
  plan::Unmount unmount;
  unmount.target = path;
  if (auto unmounted = apply(unmount); !unmounted && found)
    return fail(unmounted.error());
  if (auto removed = apply(plan::remove_directory(path)); !removed && found)
    return fail(removed.error());
  return found;
}

Result<void> make_image(Context& context, const Staging& staging) {
  const auto& files = context.system.files();
  const auto record = staging.record();
  const auto path = staging.path();
  const auto unfinished = conda::unfinished_image_of(path);
  const auto run = [&](const sys::Command& command) -> Result<void> {
    const auto done = context.system.run(command);
    if (!done)
      return fail(done.error());
    const auto lines = split_lines(done->err);
    return done->ok()
               ? Result<void>{}
               : fail(ErrorCode::failed, fmt::format("`{}` {}: {}; commands run from the share", command.argv.front(),
                                                     done->timed_out ? "did not end" : "failed",
                                                     lines.empty() ? "it says nothing" : to_utf8(lines.back())));
  };
  // By many threads: mksquashfs, which reads one file after the other, then finds them in memory.
  const auto original = hash(context, {.path = staging.source, .root = files.root()}, true);
  if (!original && original.error().code == ErrorCode::unsupported)
    return fail(ErrorCode::unsupported,
                original.error().message + ", and an image keeps none: the mode alone may let others in",
                "use `--format directory`");
  if (!original)
    return fail(original.error());
  if (auto old = files.remove(unfinished); !old && old.error().code != ErrorCode::not_found)
    return old;
  // It holds what not everybody may read.
  if (auto made = files.write_if(unfinished, std::nullopt, "", 0600); !made)
    return made;
  {
    const ui::Console::Progress line(context.console, "making " + conda::image_of(path));
    if (auto done = run(conda::image_command(staging.source, unfinished, record.files, record.bytes)); !done)
      return done;
    sys::Command sync;
    sync.argv = {"sync", unfinished};
    sync.deadline = std::chrono::minutes(10);
    if (auto synced = run(sync); !synced)
      return synced;
  }
  const auto found = hash_image(context, unfinished, path);
  if (!found)
    return fail(found.error());
  if (const auto different = conda::first_difference(*original, *found))
    return fail(ErrorCode::failed, fmt::format("{}: {} is not as in {}", unfinished, *different, staging.source),
                "it may have changed meanwhile: run the command again");
  const auto entry = context.system.entry({.path = unfinished});
  if ((entry.mode & 0077U) != 0)
    return fail(ErrorCode::failed, unfinished + ": others than root can read it", "use `--format directory`");
  if (auto named = plan::apply_action(plan::Rename{unfinished, conda::image_of(path), std::nullopt}, context.system);
      !named)
    return fail(named.error());
  context.console.message(fmt::format("{}: {} in an image of {}", conda::image_of(path),
                                      count_of(original->size(), "name"), format_bytes(entry.size)));
  return {};
}

/// The generation that is to be staged. To remove copies it need not be there any more.
Result<void> find_source(Context& context, Staging& staging) {
  const auto& where = staging.request.where;
  if (!staging.removes)
    if (auto mounted = check_share(context, where.store); !mounted)
      return mounted;
  auto environment = staging.removes ? conda::probe_environment(context.system, where.store, where.name)
                                     : shared_environment(context, where);
  if (!environment && !staging.removes)
    return fail(environment.error());
  if (!environment)
    context.console.message(environment.error().message + ": who runs it is known by this host's processes only");
  staging.environment =
      environment ? std::move(*environment) : conda::SharedEnvironment{.store = where.store, .name = where.name};
  const auto source = context.system.entry(
      {.path = staging.number() == 0 ? where.store : staging.environment.path(staging.number()), .follow = true});
  const auto generation = conda::in_generation(source.resolved);
  if (!generation && !staging.removes)
    return fail(source.error());
  staging.source = source.resolved;
  staging.store = generation ? generation->store : source.resolved;
  return {};
}

/// Two that make the same image would write into each other's.
std::optional<Result<plan::HostLock>> alone_on_host(Context& context) {
  const auto state = state_directory(context);
  if (!state)
    return Result<plan::HostLock>(fail(state.error()));
  return plan::HostLock::acquire(
      context.system.files(), *state, {shell_join(context.argv), context.system.identity().user}, context.flags.wait,
      [&](const std::string& holder) { context.console.message("waiting: " + holder); }, "stage");
}

/// As the machine is now.
/// Said where the plan is empty.
std::string nothing_to_do(const Staging& staging) {
  if (staging.removes)
    return "nothing of it is staged here";
  const auto* there = staging.copies.find(staging.number());
  if (there != nullptr && there->mounted() != (staging.format == conda::StageFormat::squashfs))
    return fmt::format("{} is there {}; `--remove` it for another form", staging.path(),
                       there->mounted() ? "as an image" : "as a directory");
  return staging.path() + " is there";
}

Result<Proposal> propose(Context& context, Staging& staging) {
  if (auto found = find_source(context, staging); !found)
    return fail(found.error());
  const auto uid = static_cast<unsigned>(context.system.identity().uid);
  const auto& stage = staging.request.settings.stage;
  staging.copies = conda::probe_staged(context.system, stage, uid, staging.store, staging.request.where.name);
  const auto& directory = staging.copies.directory;
  if (directory.kind == sys::EntryKind::unknown)
    return fail(directory.error());
  if (directory.shared)
    return fail(ErrorCode::config, stage + " lies on shared storage: a copy there is no nearer",
                "set `conda.stage` in sharefs.yaml to a directory on this host's own disk");
  if (!staging.removes) {
    const auto access = conda::stage_access(context.system, staging.source);
    if (!access)
      return fail(access.error());
    staging.access = *access;
  }
  conda::StageRequest request;
  request.access = staging.access;
  request.number = staging.removes ? 0 : staging.number();
  request.source = staging.source;
  request.created = staging.record().created;
  request.name = staging.request.where.name;
  request.format = staging.format;
  request.busy = conda::busy_copies(context.system, staging.environment, staging.copies);
  staging.made = conda::plan_stage(staging.copies, request);
  Proposal proposal{staging.made.plan, nothing_to_do(staging)};
  if (!proposal.plan.notes.empty())
    proposal.nothing = join(proposal.plan.notes, "; ");
  if (staging.made.makes) {
    if (auto room = check_room(context, staging); !room)
      return fail(room.error());
    const auto record = staging.record();
    const auto what = record.files == 0 ? std::string("all of it is")
                                        : fmt::format("{} ({}) {}", count_of(record.files, "file"),
                                                      format_bytes(record.bytes), record.files == 1 ? "is" : "are");
    proposal.plan.notes.insert(
        proposal.plan.notes.begin(),
        fmt::format("first {} copied from {} to {}, and compared; `sharefs undo` leaves that copy, unused, to "
                    "`sharefs conda stage {} --remove`",
                    what, staging.source,
                    staging.made.makes == conda::StageFormat::squashfs ? conda::image_of(staging.path())
                                                                       : staging.path(),
                    staging.request.where.name));
  }
  proposal.takes_long = staging.made.makes.has_value();
  proposal.before_groups = [&context, &staging]() -> Result<void> {
    const auto alone = staging.made.makes ? alone_on_host(context) : std::nullopt; // one `stage` at a time
    if (alone && !*alone)
      return fail(alone->error());
    if (staging.made.makes)
      if (auto made = make_directory(context, staging); !made)
        return made;
    if (staging.made.makes)
      if (auto copied = staging.made.makes == conda::StageFormat::squashfs ? make_image(context, staging)
                                                                           : copy_generation(context, staging);
          !copied)
        return copied;
    // Whoever began while the plan was shown is seen now, and nobody begins any more: the marks are gone.
    const auto now = conda::probe_environment(context.system, staging.request.where.store, staging.request.where.name);
    for (const auto number : conda::busy_copies(context.system, now ? *now : staging.environment, staging.copies))
      if (std::ranges::find(staging.made.removed, number) != staging.made.removed.end())
        return fail(ErrorCode::busy, fmt::format("a command works with the copy of generation {} since", number),
                    "run the command again when it has ended");
    return {};
  };
  return proposal;
}

Result<int> stage_environment(Context& context, const Arguments& arguments) {
  const auto request = copy_request(context, arguments);
  if (!request)
    return fail(request.error());
  const auto format = format_of(context, arguments);
  if (!format)
    return fail(format.error());
  Staging staging;
  staging.request = *request;
  staging.removes = arguments.flag("remove");
  staging.format = *format;
  return execute(context, [&] { return propose(context, staging); }).map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_stage_command{
    .name = "conda stage",
    .summary = "Copy an environment's present generation to this host's own disk",
    .description =
        "Python then starts as fast as from a local disk: `sharefs conda run` takes the copy below `conda.stage` when "
        "it is whole, of the present generation, and made by root or by the user who runs the command; otherwise the "
        "generation on the share. A later generation costs what has changed since the staged one. With `--format "
        "squashfs` the copy is one compressed file, mounted read-only (root only; after a reboot the same command "
        "mounts it again). Older copies go when no command works with them. A copy that was cut off goes on when it "
        "is run again.",
    .example = "sharefs conda stage llm_train\n"
               "sharefs conda stage llm_train --format squashfs --yes\n"
               "sharefs conda stage llm_train --remove",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`)", .min = 1, .max = 1},
    .options = {k_limit_option,
                {.names = "--format",
                 .value = "FORM",
                 .help = "directory or squashfs, instead of `conda.stage_format`"},
                {.names = "--remove", .help = "remove the copies of this environment"}},
    .elsewhere = [](Context& context, const Arguments& arguments) -> Result<std::optional<int>> {
      auto done = read_as_whoever_may(context, arguments);
      return !done && arguments.flag("remove") ? std::nullopt : done; // its copies lie on this host
    },
    .run = stage_environment,
};

} // namespace sharefs::cli
